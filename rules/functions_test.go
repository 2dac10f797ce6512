package rules_test

import (
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/rules/rulestest"
)

// TestFunctions checks functions through rules, one a condition: each must be true. Expected values are those of section 2.5 of the rule contract, or worked
// out by hand.
func TestFunctions(t *testing.T) {
	// The window holds 10, 20, 40 at 0, 60 and 120 seconds: the worked example of section 2.5.1.
	for _, condition := range []string{
		`round(avg(), 3) == 23.333`, `round(mean(), 3) == 23.333`, `round(variance(), 3) == 233.333`, `round(stdev(), 3) == 15.275`, `std_dev() == stdev()`,
		`median() == 20`, `percentile(60) == 28`, `percentile(75) == 40`, `percentile(0) == 10`, `percentile(100) == 40`, `round(wavg(), 3) == 28.333`,
		`round(wtavg(), 3) == 33.169`, `ema() == 19.375`, `median_abs_dev() == 10`, `diff() == 30`, `delta() == 30`, `rate_per_minute() == 15`,
		`rate_per_second() == 0.25`, `rate_per_hour() == 900`, `round(slope_per_minute(), 9) == 15`, `threshold_time(100) == 4`,
		`round(threshold_linear_time(100), 3) == 4.111`, `new_maximum()`, `!new_minimum()`, `diff(1) == 0`, `sum() == 70`, `min() == 10`, `max() == 40`,
		`count() == 3`, `countNaN() == 0`, `first() == 10`, `first(1) == 20`, `last() == 40`, `last(2) == 10`, `first(5) != first(5)`, `avg(2) == 30`,
		`max("1 minute") == 40 && count("1 minute") == 2`, `diff("1 minute") == 20`, `values() == [10, 20, 40]`, `values(-1) == [40]`, `values(2) == [10, 20]`,
		`len(timestamps()) == 3`, `samples(-1)[0].value == 40`, `window_duration == 120000`, `threshold_linear_time(5) > 1e300`,
		`threshold_time(40) == 0`, `len(filter(values(), # > 10)) == 2`, `window == "length(3)"`, `command_first_time == command_last_time - duration("2m")`,

		`formatNumber(1234.5, "#,##0.00") == "1,234.50"`, `formatNumber(0.5, "#.##") == ".5"`, `formatNumber(61.3651, "0.###") == "61.365"`,
		`formatNumber(4, "0.###") == "4"`, `formatNumber(-0.0001, "0.0") == "0.0"`, `formatPrecision(10, 4) == "10.00"`, `formatPrecision(1000, 5) == "1000.0"`, `formatPrecision(-0.001, 2) == "-0.0010"`,
		`formatPrecision(1e15, 17) == "1000000000000000.0"`, `log10(1e15) == 15`, `log10(0.001) == -3`, `pow(9, 0.5) == 3`, `9 ** 0.5 == 3`, `2 ^ 3 ** 2 == 512`, `round(value ** 1.5 / 1, 3) == round(pow(value, 1.5), 3)`, `(length("abc") ** 2) + 1 == 10`, `pow(10, -2) == 0.01`, `exp(0) == 1`, `log(1) == 0`, `formatBytes(27, true) == "27 B"`,
		`formatBytes(1536, false) == "1.5 KiB"`, `formatBytes(1500000, true) == "1.5 MB"`, `toBoolean("Yes") && !toBoolean(2)`, `toNumber("x", 7) == 7`,
		`trim_zero(5.00) == "5"`, `round(-2.5) == -3`, `round(1250, -2) == 1300`, `mod(7, 4) == 3`, `signum(-3) == -1`, `between(5, 1, 5)`,
		`check_range("x", 0, 1, 9) == 9`,

		`truncate("abcdef", 3) == "abc"`, `abbreviate("abcdefgh", 6) == "abc..."`, `keepBefore("a.b.c", ".") == "a"`, `keepAfter("a.b.c", ".") == "b.c"`,
		`keepBeforeLast("a.b.c", ".") == "a.b"`, `keepAfterLast("a.b.c", ".") == "c"`, `keepAfter("abc", "x") == "abc"`, `length(nil) == -1`,
		`removeBeginning("abc", "a") == "bc"`, `capFirst("ab cd") == "Ab cd"`, `capitalize("ab cd") == "Ab Cd"`, `splitQuoted('a "b c"', " ") == ["a", "b c"]`,
		`list("a,b,a") == ["a", "b"]`, `join(["a", nil, "b"]) == "a,,b"`, `indexOf("abcabc", "c", 3) == 5`, `countMatches("aaaa", "aa") == 2`,
		`urlencode("a b/c") == "a%20b%2Fc"`, `jsonencode("a\"b") == "a\\\"b"`, `unquote("'a'") == "a"`, `like("web-1", "web-*") && !like("db", "web*", "x")`,
		`likeAny("b", ["a", "b"])`, `anyLike(["web-1"], "web*")`, `eqi("A", "a")`, `regexReplace("a1b2", "[0-9]", "") == "ab"`, `coalesce([nil, "", "x"]) == "x"`,
		`concatLines(["a", "b"]) == "a\nb"`, `htmlDecode("&lt;") == "<"`,

		`formatInterval(93784000) == "1d 2h 3m 4s"`, `formatInterval(500) == "0s"`, `formatInterval(toNumber("NaN")) == "NaN"`, `formatIntervalShort(93784000) == "1d 2h"`, `weekday(now) == 2`, `week(now) == 20`,
		`iso(now) == "2024-05-14T08:02:00.000Z"`, `milliseconds("2024-05-14T08:00:00Z") == 1715673600000.0`, `milliseconds("") == 0`,
		`date_format(1715673600000.0, "yyyy-MM-dd HH:mm") == "2024-05-14 08:00"`, `elapsed_minutes("2024-05-14T08:00:00Z") == 2`,
		`elapsedTime("2024-05-14T08:00:00Z", "2024-05-14T08:00:01Z") == 1000`, `date_add(now, 1, "month").Month() == date_parse("2024-06-14T08:00:00Z").Month()`,
		`is_weekday(now) && !is_weekend(now)`, `today < now && yesterday < today && tomorrow > now`,

		`join(keys(excludeKeys({"a": "1", "b_time": "2"}, ["*_time"]))) == "a"`, `compareMaps({"a": "1"}, {"a": "2"})["a"] == "'1' -> '2'"`,
		`mergeMaps({"a": "1"}, {"a": "2"})["a"] == "2"`, `flattenJson('{"a":{"b":[1,null,""]},"c":true}') == {"a.b[0]": 1.0, "c": true}`,
		`collection("names") == ["x", "y"]`, `collection_contains("x", "names") && matchList("y", "names")`, `collection("none") == []`,
		`entity_tag("boiler", "site") == "north"`, `entity_label("boiler") == "Main boiler"`, `entity.label == "Main boiler" && entity.tags.site == "north"`,
		`getEntity("nobody") == nil`, `db_last("other") == 5`, `db_statistic("avg", "1 hour", "other") == 4`, `db_statistic("max", "1 hour", "other", "nobody") != 1`,
		`getEntityCount("other", "now - 1*hour", "now", "") == 1`, `property("conf::size") == "9"`, `db_message_count("1 hour", "audit", "") == 2`,
		`db_message_last("1 hour", "audit", "").message == "two"`, `elapsed_minutes(last_open().command_time) > 60`, `!rule_open("r")`, `rule_window("none") == nil`,
		`db_statistic("min_value_time", "1 hour", "other") == 1715673599900.0`, `db_statistic("Max_Value_Time", "1 hour", "other") == 1715673600000.0`,
		`db_message_count("1 hour", "audit", "", nil, "boiler", "message = 'one'") == 1`,
		`entity.lastInsertTime == command_time && metric.lastInsertDate == command_time`, `getEntity("boiler").lastInsertTime == command_time`,
		`getEntity("MAIN boiler", true).name == "boiler"`, `getEntity("boiler", true) == nil && getEntity("boiler", false).id == "boiler"`,
		`len(property_compare_except(["a"], ["b"], false)) + len(property_compare_except(["a"], false)) + len(property_compare(false)) == 0`,
	} {
		w := newWorld(t, rulestest.NewSandbox(start-100), "kind: collection\nname: names\nitems: [x, y]\n---\n"+ruleWith(condition)+"window: {count: 3}\n")
		w.insert(`entity e:boiler l:"Main boiler" t:site=north`, "series e:boiler m:other=3", "property e:boiler t:conf v:size=9", `message e:boiler t:type=audit m:one`)
		w.box.SetClock(start)
		w.insert("series e:boiler m:other=5", `message e:boiler t:type=audit m:two`, "series e:boiler m:x=10")
		w.box.SetClock(start + 60_000)
		w.insert("series e:boiler m:x=20")
		w.box.SetClock(start + 120_000)
		w.advance()
		before := len(w.engine.Errors())
		w.insert("series e:boiler m:x=40")
		w.advance()
		open := w.outcome().Alerts
		if len(open) != 1 || open[0].Value != 40 {
			t.Errorf("%s is not true; errors %+v", condition, w.engine.Errors()[before:])
		}
	}
}

// What no int holds is an error of the rule, and not another number on each processor.
func TestNoWholeNumber(t *testing.T) {
	for _, condition := range []string{`toLong(value * 1e300) != 7`, `toLong(toNumber("NaN")) != 7`} {
		w := newWorld(t, rulestest.NewSandbox(start), ruleWith(condition))
		w.insert("series e:a m:x=1")
		w.advance()
		if errs := w.engine.Errors(); len(errs) != 1 || !strings.Contains(errs[0].Text, "no whole number of at most") {
			t.Errorf("%s: errors %+v, want one of the whole number", condition, errs)
		}
	}
}
