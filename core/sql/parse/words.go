package parse

import "strings"

// Sets of words, in lower case.
var (
	// reserved words are no names unless quoted, but see columns. Units and calendar keywords are reserved as well.
	reserved = setOf(`and as asc auto between by calendar case cast current dayofmonth dayofweek dayofyear dbtimezone delete dense_rank desc detail distinct
		else end endtime end_time entity escape excl extend false first_value_time float from full group groups having in incl inner integer interpolate is
		isnull join lag last_time lead like limit linear lookup mapdb metric nan next no none not null number offset on option or order outer period
		population preceding previous rank regex row row_memory_threshold row_number sample select start_time step string then time timestamp timezone true
		using value weekofyear when where with workday_calendar yes`)

	// columns are the reserved words that name a column all the same.
	columns = setOf(`entity groups interpolate metric time timezone value`)

	// selfNames are the predefined columns, which need no quotes as aliases.
	selfNames = setOf(`time datetime value text metric entity tags`)

	// functions are the reserved words that name a function, before a parenthesis.
	functions = setOf(`dayofmonth dayofweek dayofyear dense_rank endtime isnull lag lead lookup mapdb rank row_number weekofyear
		second minute hour day week month quarter year`)

	units = setOf(`millisecond second minute hour day week month quarter year`)

	calendar = setOf(`now today yesterday tomorrow first_day current_timestamp
		current_minute current_hour current_day current_week current_month current_quarter current_year
		previous_minute previous_hour previous_day previous_week previous_month previous_quarter previous_year
		next_minute next_hour next_day next_week next_month next_quarter next_year
		monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun
		current_working_day previous_working_day next_working_day previous_vacation_day next_vacation_day
		first_working_day last_working_day first_vacation_day last_vacation_day`)

	// arguments are the words besides units that stand alone as an argument of a function.
	arguments = setOf(`sample population auto dayofmonth dayofweek dayofyear weekofyear`)

	// afterTable are the reserved words that may follow the table in FROM.
	afterTable = setOf(`as full group having inner join limit on option order outer where with`)

	// castTypes gives the type that CAST makes of each name of a type.
	castTypes = map[string]string{
		"number": "number", "decimal": "number", "double": "number", "float": "number",
		"string": "string", "varchar": "string",
		"timestamp": "timestamp",
		"integer":   "integer", "int": "integer", "bigint": "integer", "long": "integer", "smallint": "integer", "short": "integer",
	}
)

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// isReserved reports whether w needs quotes as a name of a table or an alias.
func isReserved(w string) bool { return reserved[w] || units[w] || calendar[w] }
