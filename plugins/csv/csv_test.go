package csv

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

func offsetsOf(t testing.TB, zone string) []abi.ZoneOffset {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return offsets(loc)
}

// offsets lists the offsets of a zone over the years of the tests, as the host does.
func offsets(loc *time.Location) []abi.ZoneOffset {
	var out []abi.ZoneOffset
	for at := time.Unix(0, 0); at.Year() < 2030; at = at.Add(time.Hour) {
		if _, seconds := at.In(loc).Zone(); len(out) == 0 || out[len(out)-1].Seconds != seconds {
			out = append(out, abi.ZoneOffset{From: at.UnixMilli(), Seconds: seconds})
		}
	}
	return out
}

// zoneOf answers for a zone as the host does.
func zoneOf(id string, buf []byte) int32 {
	loc, err := time.LoadLocation(id)
	if err != nil {
		return int32(abi.Absent)
	}
	answer := abi.AppendZone(nil, offsets(loc))
	if len(answer) <= len(buf) {
		copy(buf, answer)
	}
	return int32(len(answer))
}

// upload runs a file through the plugin in chunks and returns the commands in the order produced, the rejects, and the number of lines.
func upload(t testing.TB, r abi.OpenRequest, file string, size int) (commands, rejects []string, lines int, err error) {
	t.Helper()
	in := guest.New(Plugin(), abi.Options{Zone: zoneOf})
	r.Kind = abi.KindParser
	request, _ := json.Marshal(r)
	if in.Init(nil) != abi.OK {
		t.Fatal(in.LastError())
	}
	if code := in.Open(request); code != abi.OK {
		return nil, nil, 0, fmt.Errorf("%s", in.LastError())
	}
	call := func(chunk string, flags uint32) error {
		out, code := in.Call(abi.KindParser, []byte(chunk), flags)
		if code != abi.OK {
			return fmt.Errorf("%s", in.LastError())
		}
		var b abi.Batch
		if err := b.Decode(string(out), abi.Limits{}); err != nil {
			t.Fatal(err)
		}
		lines += int(b.Lines)
		commands = append(commands, texts(&b)...)
		for _, reject := range b.Rejects {
			rejects = append(rejects, fmt.Sprintf("%d,%d: %s: %s", reject.Line, reject.Column, reject.Reason, reject.Text))
		}
		if b.Stopped {
			return errors.New(b.Rejects[len(b.Rejects)-1].String())
		}
		return nil
	}
	for start := 0; start < len(file); start += size {
		if err := call(file[start:min(start+size, len(file))], 0); err != nil {
			return commands, rejects, lines, err
		}
	}
	return commands, rejects, lines, call("", abi.FlagLast)
}

// texts prints a batch in the style of text commands, samples of one row merged.
func texts(b *abi.Batch) []string {
	var out []string
	decimals := map[int]string{}
	for _, d := range b.Decimals {
		decimals[d.Index] = d.Text
	}
	for i, s := range b.Samples {
		key := b.Series[s.Series]
		number := strconv.FormatFloat(s.Value, 'f', -1, 64)
		if d := decimals[i]; d != "" {
			number = d
		}
		out = append(out, fmt.Sprintf("series e:%s d:%s m:%s=%s%s", key.Entity, iso(s.Time), key.Metric, number, pairs(" t:", key.Tags)))
	}
	for _, p := range b.Properties {
		out = append(out, fmt.Sprintf("property e:%s t:%s d:%s%s%s", p.Entity, p.Type, iso(p.Time), pairs(" k:", p.Keys), pairs(" v:", p.Tags)))
	}
	for _, m := range b.Messages {
		out = append(out, fmt.Sprintf("message e:%s d:%s type=%s source=%s severity=%d%s m:%s", m.Entity, iso(m.Time), m.Type, m.Source, m.Severity, pairs(" t:", m.Tags), m.Text))
	}
	return out
}

func iso(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05Z") }

func pairs(prefix string, ps []abi.Pair) string {
	m := map[string]string{}
	for _, p := range ps {
		m[p.Name] = p.Value
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s%s=%s", prefix, name, m[name])
	}
	return b.String()
}

func lines(s string) []string {
	s = strings.Trim(s, "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// The cases are worked examples of the contract and its rules, one a case.
func TestColumnMode(t *testing.T) {
	for _, c := range []struct {
		name, config, zone, file, want string
		params, tags                   map[string]string
		wantLines                      int
	}{
		{
			name: "wide with a preamble and a replaced header",
			config: `{"skipLines":2,"header":"day,tmax,tmin,rain,flag","defaultEntity":"garden-1","metricPrefix":"wx.","ignoredColumns":"flag",
				"timestampColumns":"day","timestampPattern":"yyyy-MM-dd","filter":"number('tmax') > 0"}`,
			zone:      "Europe/Berlin",
			file:      "Site,Garden\nOwner,Parks\nDay,Max (C),Min (C),Rain (mm),Flag\n2021-02-01,-1.5,-6,0,E\n2021-02-02,3.5,-2.25,1.2,\n2021-02-03,4.0,,0.0,T\n",
			wantLines: 6,
			want: `
series e:garden-1 d:2021-02-01T23:00:00Z m:wx.tmax=3.5
series e:garden-1 d:2021-02-01T23:00:00Z m:wx.tmin=-2.25
series e:garden-1 d:2021-02-01T23:00:00Z m:wx.rain=1.2
series e:garden-1 d:2021-02-02T23:00:00Z m:wx.tmax=4
series e:garden-1 d:2021-02-02T23:00:00Z m:wx.rain=0`,
		},
		{ // the table replaces exact names, the default one too, before the prefix and the lower case
			name: "replaced entities",
			config: `{"entityColumns":"host","defaultEntity":"none","entityPrefix":"dc-","entityLookup":"hosts","entityReplacements":{"nurswg":"NYC 1","none":"unknown"},
				"timestampColumns":"time","tagColumns":"host"}`,
			file:      "time,host,load\n2021-05-03T10:00:00Z,nurswg,1\n2021-05-03T10:00:00Z,NURSWG,2\n2021-05-03T10:00:00Z,,3\n2021-05-03T10:01:00Z,nurswg,4\n",
			wantLines: 5,
			want: `
series e:dc-nyc_1 d:2021-05-03T10:00:00Z m:load=1 t:host=nurswg
series e:dc-nurswg d:2021-05-03T10:00:00Z m:load=2 t:host=NURSWG
series e:dc-unknown d:2021-05-03T10:00:00Z m:load=3
series e:dc-nyc_1 d:2021-05-03T10:01:00Z m:load=4 t:host=nurswg`,
		},
		{
			name: "long without a header",
			config: `{"header":"lat,lon,time,param,conc,unit","ignoredColumns":"lat,lon,unit","metricNameColumn":"param","metricValueColumn":"conc",
				"timestampColumns":"time","timestampPattern":"yyyy-MM-ddTHH:mm","defaultEntity":"stn-9","filter":"number('conc') > 0"}`,
			file: "\"52.1\",\"13.2\",\"2021-05-03T10:00\",\"O3\",\"41.5\",\"UG\"\n\"52.1\",\"13.2\",\"2021-05-03T10:00\",\"NO2\",\"0.0\",\"UG\"\n" +
				"\"52.1\",\"13.2\",\"2021-05-03T11:00\",\"PM2.5\",\"7.25\",\"UG\"\n",
			wantLines: 3,
			want: `
series e:stn-9 d:2021-05-03T10:00:00Z m:o3=41.5
series e:stn-9 d:2021-05-03T11:00:00Z m:pm2.5=7.25`,
		},
		{
			name: "European notation",
			config: `{"delimiter":";","decimalSeparator":",","groupingSeparator":".","timestampColumns":"Date,Time","timestampPattern":"dd/MM/yyyy-HH.mm.ss",
				"defaultEntity":"road-1","renamedColumns":{"CO(GT)":"co"},"tagColumns":"Lane","filter":"number('co') > 2.5 AND number('Count') = 1360"}`,
			file:      "\uFEFFDate;Time;Lane;CO(GT);Count\r\n03/05/2021;8.00.00;A 1;2,6;1.360\r\n",
			wantLines: 2,
			want: `
series e:road-1 d:2021-05-03T08:00:00Z m:co=2.6 t:lane=A 1
series e:road-1 d:2021-05-03T08:00:00Z m:count=1360 t:lane=A 1`,
		},
		{
			name:      "request parameters",
			config:    `{"timestampColumns":"time","timestampType":"MILLISECONDS"}`,
			params:    map[string]string{"default-entity": "web-9"},
			tags:      map[string]string{"site": "hq"},
			file:      "time,cpu,mem free\n1620036000000,12.4,512.25\n",
			wantLines: 2,
			want: `
series e:web-9 d:2021-05-03T10:00:00Z m:cpu=12.4 t:site=hq
series e:web-9 d:2021-05-03T10:00:00Z m:mem_free=512.25 t:site=hq`,
		},
		{
			name:   "entity of several columns, prefixes, tags that beat each other",
			config: `{"timestampColumns":"t","timestampType":"SECONDS","entityColumns":"site,unit","entityPrefix":"P-","metricPrefix":"m.","tagColumns":"Kind","defaultTags":{"kind":"d","loc":"x"}}`,
			tags:   map[string]string{"loc": "y"},
			file:   "t,site,unit,Kind,Flow Rate\n1620036000.5,A b,7,k1,1\n1620036001,A b,7,,2\n",
			want: `
series e:p-a_b-7 d:2021-05-03T10:00:00Z m:m.flow_rate=1 t:kind=k1 t:loc=y
series e:p-a_b-7 d:2021-05-03T10:00:01Z m:m.flow_rate=2 t:kind=d t:loc=y`,
		},
		{
			name:   "properties",
			config: `{"name":"inventory","commandType":"PROPERTY","timestampColumns":"t","entityColumns":"host","propertyKeyColumns":"slot","defaultTags":{"site":"hq"}}`,
			file:   "t,host,slot,Make,Size\n2021-05-03T10:00:00Z,H1,1,KX 3,\n2021-05-03T10:00:00Z,H1,2,,\n",
			want:   `property e:h1 t:inventory d:2021-05-03T10:00:00Z k:slot=1 v:make=KX 3 v:site=hq`,
		},
		{
			name: "messages",
			config: `{"commandType":"MESSAGE","timestampColumns":"t","entityColumns":"host","messageColumn":"text","ignoredColumns":"id",
				"defaultTags":{"type":"none","user":"x"}}`,
			file: "t,host,type,severity,id,user,text\n2021-05-03T10:00:00Z,H1,Auth,warn,7,root,\"login \"\"failed\"\"\nagain\"\n",
			want: "message e:h1 d:2021-05-03T10:00:00Z type=auth source= severity=3 t:user=root m:login \"failed\"\nagain",
		},
		{
			name:   "comments, blank lines, lone CR, missing and surplus empty cells",
			config: `{"comment":"#","timestampColumns":"t","defaultEntity":"e"}`,
			file:   "# made by hand\r\n\r\nt,a,b\r2021-05-03T10:00:00Z,1\r\n# more\n2021-05-03T10:00:01Z,,2,,\n",
			want:   "series e:e d:2021-05-03T10:00:00Z m:a=1\nseries e:e d:2021-05-03T10:00:01Z m:b=2",
		},
		{
			name:   "fixed width with padding",
			config: `{"fieldLengths":[8,4,4],"padding":"_","header":"t,a,b","timestampColumns":"t","timestampPattern":"yyyyMMdd","defaultEntity":"e"}`,
			file:   "20210503_1.5__22\n",
			want:   "series e:e d:2021-05-03T00:00:00Z m:a=1.5\nseries e:e d:2021-05-03T00:00:00Z m:b=22",
		},
		{
			name:   "NaN kept, exact decimals, exponents, plus signs",
			config: `{"timestampColumns":"t","defaultEntity":"e"}`,
			file:   "t,a,b,c\n2021-05-03T10:00:00Z,NaN,1.2345678901234567891,+1e3\n",
			want: `
series e:e d:2021-05-03T10:00:00Z m:a=NaN
series e:e d:2021-05-03T10:00:00Z m:b=1.2345678901234567891
series e:e d:2021-05-03T10:00:00Z m:c=1000`,
		},
		{
			name:   "blanks around cells, tags that alternate, quoted rows among plain ones",
			config: `{"timestampColumns":"t","entityColumns":"h","tagColumns":"dc"}`,
			file: "t,h,dc,a,b\n2021-05-03T10:00:00Z,x,eu, 1 ,\t2\n 2021-05-03T10:00:01Z ,x,us,3.25,-.5\n2021-05-03T10:00:02Z,x,,123456789012.5,4\n" +
				"\"2021-05-03T10:00:03Z\",x,eu,5,\"6\"\n2021-05-03T10:00:04Z,x , eu,7,8\n",
			want: `
series e:x d:2021-05-03T10:00:00Z m:a=1 t:dc=eu
series e:x d:2021-05-03T10:00:00Z m:b=2 t:dc=eu
series e:x d:2021-05-03T10:00:01Z m:a=3.25 t:dc=us
series e:x d:2021-05-03T10:00:01Z m:b=-0.5 t:dc=us
series e:x d:2021-05-03T10:00:02Z m:a=123456789012.5
series e:x d:2021-05-03T10:00:02Z m:b=4
series e:x d:2021-05-03T10:00:03Z m:a=5 t:dc=eu
series e:x d:2021-05-03T10:00:03Z m:b=6 t:dc=eu
series e:x d:2021-05-03T10:00:04Z m:a=7 t:dc=eu
series e:x d:2021-05-03T10:00:04Z m:b=8 t:dc=eu`,
		},
		{
			name:      "records that end with a semicolon",
			config:    `{"lineDelimiter":";","timestampColumns":"t","defaultEntity":"e"}`,
			file:      "t,a;2021-05-03T10:00:00Z,1;\n2021-05-03T10:00:01Z,2;\r\n",
			wantLines: 3,
			want:      "series e:e d:2021-05-03T10:00:00Z m:a=1\nseries e:e d:2021-05-03T10:00:01Z m:a=2",
		},
		{
			name:   "offset column",
			config: `{"timestampColumns":"t","timestampPattern":"yyyy-MM-dd HH:mm","timezoneDiffColumn":"off","defaultEntity":"e"}`,
			file:   "t,off,a\n2021-05-03 12:00,+02:00,1\n2021-05-03 12:00,-90,2\n",
			want:   "series e:e d:2021-05-03T10:00:00Z m:a=1\nseries e:e d:2021-05-03T13:30:00Z m:a=2",
		},
		{ // decimal hours below 24, minutes from there, signs, both forms with minutes, and without an offset the zone of the upload
			name:   "offset column with numbers",
			zone:   "Asia/Tokyo",
			config: `{"timestampColumns":"t","timestampPattern":"yyyy-MM-dd HH:mm","timezoneDiffColumn":"off","defaultEntity":"e"}`,
			file: "t,off,a\n2021-05-03 12:00,5.5,1\n2021-05-03 12:00,-1.5,2\n2021-05-03 12:00,5.0,3\n2021-05-03 12:00, ,4\n2021-05-03 12:00,330,5\n" +
				"2021-05-03 12:00,-0930,6\n2021-05-03 12:00,+5:45,7\n2021-05-03 12:00,\"-18\",8\n2021-05-03 12:00,0,9\n2021-05-03 12:00,24,10\n" +
				"2021-05-03 12:00,02:00,11\n",
			want: `
series e:e d:2021-05-03T06:30:00Z m:a=1
series e:e d:2021-05-03T13:30:00Z m:a=2
series e:e d:2021-05-03T07:00:00Z m:a=3
series e:e d:2021-05-03T03:00:00Z m:a=4
series e:e d:2021-05-03T06:30:00Z m:a=5
series e:e d:2021-05-03T21:30:00Z m:a=6
series e:e d:2021-05-03T06:15:00Z m:a=7
series e:e d:2021-05-04T06:00:00Z m:a=8
series e:e d:2021-05-03T12:00:00Z m:a=9
series e:e d:2021-05-03T11:36:00Z m:a=10
series e:e d:2021-05-03T10:00:00Z m:a=11`,
		},
		{
			name:   "offset column in European notation",
			config: `{"delimiter":";","decimalSeparator":",","timestampColumns":"t","timestampPattern":"yyyy-MM-dd HH:mm","timezoneDiffColumn":"off","defaultEntity":"e"}`,
			file:   "t;off;a\n2021-05-03 12:00;5,75;1\n",
			want:   "series e:e d:2021-05-03T06:15:00Z m:a=1",
		},
		{ // the zone in the text, then the column, then the zone of the upload
			name:   "offset column beside times with a zone",
			zone:   "Asia/Tokyo",
			config: `{"timestampColumns":"t","timezoneDiffColumn":"off","defaultEntity":"e"}`,
			file:   "t,off,a\n2021-05-03T12:00:00+01:00,5.5,1\n2021-05-03T12:00:00,5.5,2\n2021-05-03T12:00:00,,3\n",
			want:   "series e:e d:2021-05-03T11:00:00Z m:a=1\nseries e:e d:2021-05-03T06:30:00Z m:a=2\nseries e:e d:2021-05-03T03:00:00Z m:a=3",
		},
		{ // 2021-03-28 01:30 lies before the change to summer time, 2021-07-01 10:00 behind it
			name:   "zones by name",
			zone:   "Asia/Tokyo",
			config: `{"timestampColumns":"t","timestampPattern":"yyyy-MM-dd HH:mm[ VV]","defaultEntity":"e"}`,
			file: "t,a\n2021-05-03 10:00 Europe/Berlin,1\n2021-03-28 01:30 Europe/Berlin,2\n2021-07-01 10:00 America/New_York,3\n2021-05-03 10:00 UTC,4\n" +
				"2021-05-03 10:00,5\n",
			want: `
series e:e d:2021-05-03T08:00:00Z m:a=1
series e:e d:2021-03-28T00:30:00Z m:a=2
series e:e d:2021-07-01T14:00:00Z m:a=3
series e:e d:2021-05-03T10:00:00Z m:a=4
series e:e d:2021-05-03T01:00:00Z m:a=5`,
		},
		{ // the host fills in their values, over the tags of request and settings but not over those of columns
			name:   "tags of entity and metric",
			config: `{"timestampColumns":"t","defaultEntity":"e","tagColumns":"kind","entityTags":["Site Plan","kind"],"metricTags":"unit"}`,
			params: map[string]string{"metric-tags": "kind;Grade"},
			tags:   map[string]string{"grade": "0"},
			file:   "t,kind,a\n2021-05-03T10:00:00Z,,1\n2021-05-03T10:00:01Z,x,2\n",
			want: "series e:e d:2021-05-03T10:00:00Z m:a=1 t:entity\x00kind= t:entity\x00site_plan= t:grade=0 t:metric\x00grade= t:metric\x00kind=\n" +
				"series e:e d:2021-05-03T10:00:01Z m:a=2 t:entity\x00site_plan= t:grade=0 t:kind=x t:metric\x00grade=",
		},
		{
			name:   "time parameter and written property",
			config: `{"name":"cfg","entityColumns":"host","writeProperty":true}`,
			params: map[string]string{"time": "now - 1 * hour"},
			file:   "host,a\nh,1\n",
			want:   "series e:h d:2021-05-03T09:00:00Z m:a=1\nproperty e:h t:cfg d:2021-05-03T09:00:00Z v:a=1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.zone == "" {
				c.zone = "UTC"
			}
			r := abi.OpenRequest{Config: json.RawMessage(c.config), Params: c.params, Tags: c.tags, Offsets: offsetsOf(t, c.zone), Received: 1620036000000}
			for _, size := range []int{1, 3, 1 << 20} {
				got, rejects, n, err := upload(t, r, c.file, size)
				if err != nil || len(rejects) > 0 {
					t.Fatalf("chunks of %d: %v, rejects %q", size, err, rejects)
				}
				if diff := cmp.Diff(lines(c.want), lines(strings.Join(got, "\n"))); diff != "" {
					t.Errorf("chunks of %d (-want +got):\n%s", size, diff)
				}
				if c.wantLines > 0 && n != c.wantLines {
					t.Errorf("chunks of %d: %d lines, want %d", size, n, c.wantLines)
				}
			}
		})
	}
}

// Neither rows of 200 cells nor more entities than the parser keeps at hand change the result.
func TestWideRowsAndManyEntities(t *testing.T) {
	const columns, rows = 200, 700
	var file strings.Builder
	file.WriteString("t,h")
	for c := range columns {
		fmt.Fprintf(&file, ",m%d", c)
	}
	var want []string
	for r := range rows {
		entity := "host-" + strconv.Itoa(r%350)
		fmt.Fprintf(&file, "\n2021-05-03T10:00:00Z,%s", entity)
		for c := range columns {
			if c%50 == r%50 {
				fmt.Fprintf(&file, ",%d.5", r+c)
				want = append(want, fmt.Sprintf("series e:%s d:2021-05-03T10:00:00Z m:m%d=%d.5", entity, c, r+c))
			} else {
				file.WriteByte(',')
			}
		}
	}
	file.WriteByte('\n')
	r := abi.OpenRequest{Config: json.RawMessage(`{"timestampColumns":"t","entityColumns":"h"}`)}
	for _, size := range []int{1000, 1 << 20} {
		got, rejects, n, err := upload(t, r, file.String(), size)
		if err != nil || len(rejects) > 0 || n != rows+1 {
			t.Fatalf("chunks of %d: %d lines, %v, rejects %q", size, n, err, rejects)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("chunks of %d (-want +got):\n%s", size, diff)
		}
	}
}

func TestSecondsThatAreNoTime(t *testing.T) {
	for _, text := range []string{"NaN", "Infinity", "-Inf", "1e300", "-1", "4294969200"} {
		r := abi.OpenRequest{Config: json.RawMessage(`{"timestampColumns":"t","timestampType":"SECONDS","defaultEntity":"e","ignoreLineErrors":true}`)}
		got, rejects, _, err := upload(t, r, "t,a\n"+text+",1\n", 1000)
		if err != nil || len(got) > 0 || len(rejects) != 1 {
			t.Errorf("%s: %v, rejects %q, %v; want one reject", text, got, rejects, err)
		}
	}
}

func TestLineErrors(t *testing.T) {
	file := "t,a,b\n2021-05-03T10:00:00Z,1,2\ntomorrow,3,4\n2021-05-03T10:00:01Z,x,5\n2021-05-03T10:00:02Z,6,7,8\n" +
		"2021-05-03T10:00:03Z,\"9\"z,1\n2106-02-07T07:00:00Z,1,1\n2021-05-03T10:00:04Z,10,11\n"
	config := `{"timestampColumns":"t","defaultEntity":"e","ignoreLineErrors":%v}`
	for _, c := range []struct {
		ignore        bool
		want, rejects []string
		wantErr       string
	}{
		{true, []string{
			"series e:e d:2021-05-03T10:00:00Z m:a=1", "series e:e d:2021-05-03T10:00:00Z m:b=2", "series e:e d:2021-05-03T10:00:01Z m:b=5",
			"series e:e d:2021-05-03T10:00:04Z m:a=10", "series e:e d:2021-05-03T10:00:04Z m:b=11",
		}, []string{
			"3,1: not a time between 1970 and 2106 in the form of timestampPattern: tomorrow",
			"4,2: not a number: x",
			"5,4: more cells than the header has names: 8",
			"6,2: text after a quoted cell: 2021-05-03T10:00:03Z,\"9\"z,1",
			"7,1: not a time between 1970 and 2106 in the form of timestampPattern: 2106-02-07T07:00:00Z",
		}, ""},
		{false, []string{"series e:e d:2021-05-03T10:00:00Z m:a=1", "series e:e d:2021-05-03T10:00:00Z m:b=2"},
			[]string{"3,1: not a time between 1970 and 2106 in the form of timestampPattern: tomorrow"},
			`Line 3, column 1: not a time between 1970 and 2106 in the form of timestampPattern: "tomorrow"`},
	} {
		for _, size := range []int{1, 1 << 20} {
			got, rejects, _, err := upload(t, abi.OpenRequest{Config: json.RawMessage(fmt.Sprintf(config, c.ignore))}, file, size)
			if fmt.Sprint(err) != c.wantErr && (err != nil || c.wantErr != "") {
				t.Errorf("got %v, want %s", err, c.wantErr)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.rejects, rejects); diff != "" {
				t.Errorf("rejects -want +got:\n%s", diff)
			}
		}
	}
}

func TestLastLineWithoutAnEnd(t *testing.T) {
	config := json.RawMessage(`{"timestampColumns":"t","defaultEntity":"e"}`)
	got, _, _, err := upload(t, abi.OpenRequest{Config: config}, "t,a\n2021-05-03T10:00:00Z,1\n2021-05-03T10:00:01Z,x", 1<<20)
	if len(got) != 1 || err == nil || err.Error() != `Line 3, column 2: not a number: "x"` {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWrongConfigurationsNameEveryFault(t *testing.T) {
	config := `{"commandType":"SERIES","timestampType":"DAYS","filter":"row['a'","delimiter":"ab","schema":"select()","skipLines":-1,"decimalSeparator":"."}`
	_, _, _, err := upload(t, abi.OpenRequest{Config: json.RawMessage(config)}, "", 1)
	for _, want := range []string{`commandType "SERIES"`, `timestampType "DAYS"`, "filter:", `delimiter "ab"`, "schema: line 1, column 1: select takes 1 argument, not 0", "skipLines is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not mention %s", err, want)
		}
	}
	if _, _, _, err := upload(t, abi.OpenRequest{Config: json.RawMessage(`{"timestampColums":"t"}`)}, "", 1); err == nil || !strings.Contains(err.Error(), "timestampColums") {
		t.Errorf("unknown setting: %v", err)
	}
	_, rejects, _, err := upload(t, abi.OpenRequest{Config: json.RawMessage(`{"timestampColumns":"when","ignoreLineErrors":true}`)}, "t,a\n1,2\n", 1)
	if len(rejects) != 1 || err == nil || !strings.Contains(err.Error(), "the header has no column when; it has t, a") {
		t.Errorf("missing column: %q, %v", rejects, err)
	}
}

const (
	committed = "../../examples/quickstart/data"
	more      = "../../../shared/data/csv" // files that are not committed; TIDEMARK_SAMPLES names another folder
)

func sample(t testing.TB, name string) string {
	t.Helper()
	for _, dir := range []string{committed, more, filepath.Join(os.Getenv("TIDEMARK_SAMPLES"), "csv")} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return string(data)
		}
	}
	t.Skipf("SKIPPED: the sample %s is not on this machine", name)
	return ""
}

// The expected lines were read off the files by eye.
func TestRealFiles(t *testing.T) {
	for _, c := range []struct {
		file, config string
		commands     int // 0 = not counted
		want         []string
	}{
		{
			file:   "air-quality-european-bom.csv",
			config: `{"delimiter":";","decimalSeparator":",","timestampColumns":"Date,Time","timestampPattern":"dd/MM/yyyy-HH.mm.ss","defaultEntity":"road-1"}`,
			want: []string{
				"series e:road-1 d:2004-03-10T18:00:00Z m:co(gt)=2.6",
				"series e:road-1 d:2004-03-10T18:00:00Z m:t=13.6",
			},
		},
		{
			file:     "notes-quoted-newlines.csv",
			config:   `{"name":"notes","commandType":"PROPERTY","timestampColumns":"time","entityColumns":"sensor"}`,
			commands: 5,
		},
		{
			file: "beach-sensors-ampm.csv",
			config: `{"entityColumns":"Beach Name","timestampColumns":"Measurement Timestamp","timestampPattern":"MM/dd/yyyy hh:mm:ss a",
				"ignoredColumns":"Measurement Timestamp Label,Measurement ID","timezone":"UTC"}`,
		},
		{
			file:   "air-sensor-ragged.csv",
			config: `{"delimiter":";","timestampColumns":"Time","timestampPattern":"yyyy/MM/dd HH:mm:ss","defaultEntity":"sensor","ignoreLineErrors":true}`,
		},
		{
			file:   "station-split-date-time.csv",
			config: `{"timestampColumns":["DATE (MM/DD/YYYY)","MST"],"timestampPattern":"MM/dd/yyyy-HH:mm","defaultEntity":"station"}`,
		},
	} {
		t.Run(c.file, func(t *testing.T) {
			file := sample(t, c.file)
			got, rejects, _, err := upload(t, abi.OpenRequest{Config: json.RawMessage(c.config)}, file, 1<<18)
			if err != nil {
				t.Fatalf("%v; %q", err, rejects)
			}
			if c.commands > 0 && len(got) != c.commands || len(got) == 0 {
				t.Errorf("%d commands, want %d", len(got), c.commands)
			}
			for _, want := range c.want {
				if !slices.Contains(got, want) {
					t.Errorf("missing %s in %q", want, got[:min(20, len(got))])
				}
			}
			small, _, _, err := upload(t, abi.OpenRequest{Config: json.RawMessage(c.config)}, file, 101)
			if err != nil || !slices.Equal(got, small) {
				t.Errorf("small chunks give something else: %v", err)
			}
		})
	}
}

// A fault ends the file with the batch that holds what came before it, whether its line has an end or not, and however the file is cut.
func TestFaultOfTheLastLine(t *testing.T) {
	for _, c := range []struct{ name, config, file string }{
		{"a line", `{"timestampColumns":"t","entityColumns":"h"}`, "h,t,v\nz,2021-01-01T00:00:00Z,1\nz,2021-01-01T00:01:00Z,bad\n"},
		{"a line without an end", `{"timestampColumns":"t","entityColumns":"h"}`, "h,t,v\nz,2021-01-01T00:00:00Z,1\nz,2021-01-01T00:01:00Z,bad"},
		{"a record", `{"timestampColumns":"t","entityColumns":"h","lineDelimiter":";"}`, "h,t,v;z,2021-01-01T00:00:00Z,1;z,2021-01-01T00:01:00Z,bad;"},
		{"a record without an end", `{"timestampColumns":"t","entityColumns":"h","lineDelimiter":";"}`,
			"h,t,v;\nz,2021-01-01T00:00:00Z,1;\nz,2021-01-01T00:01:00Z,\n\nbad"},
	} {
		for _, size := range []int{1, 1 << 20} {
			got, rejects, n, err := upload(t, abi.OpenRequest{Config: json.RawMessage(c.config)}, c.file, size)
			if want := `Line 3, column 3: not a number: "bad"`; err == nil || err.Error() != want || n != 3 {
				t.Errorf("%s, chunks of %d: error %v and %d lines, want %s and 3", c.name, size, err, n, want)
			}
			if !slices.Equal(rejects, []string{"3,3: not a number: bad"}) || !slices.Equal(got, []string{"series e:z d:2021-01-01T00:00:00Z m:v=1"}) {
				t.Errorf("%s, chunks of %d: %q, rejects %q", c.name, size, got, rejects)
			}
		}
	}
}

func TestOffsetsThatAreNone(t *testing.T) {
	const reason = "2,2: not an offset from UTC: use +hh:mm, +hhmm, hours below 24 or minutes, up to 18 hours: "
	for _, text := range []string{"soon", "NaN", "+02:75", "5:30x", "--5", "19", "1081", "-1e9", "Europe/Berlin"} {
		r := abi.OpenRequest{Config: json.RawMessage(`{"timestampColumns":"t","timestampPattern":"yyyy-MM-dd HH:mm","timezoneDiffColumn":"off","defaultEntity":"e",
			"ignoreLineErrors":true}`)}
		got, rejects, _, err := upload(t, r, "t,off,a\n2021-05-03 12:00,"+text+",1\n", 1000)
		if err != nil || len(got) > 0 || !slices.Equal(rejects, []string{reason + text}) {
			t.Errorf("%s: %v, rejects %q, %v", text, got, rejects, err)
		}
	}
}

// A header that the settings replace is known by its time, not by the column beside it.
func TestFirstRowWithAWrongOffsetIsNoHeader(t *testing.T) {
	r := abi.OpenRequest{Config: json.RawMessage(`{"header":"t,off,a","timestampColumns":"t","timestampPattern":"yyyy-MM-dd","timezoneDiffColumn":"off",
		"defaultEntity":"e"}`)}
	for file, want := range map[string]int{"2021-05-03,soon,1\n": 1, "Day,Offset,A\n2021-05-03,1,1\n": 0} {
		if _, rejects, _, _ := upload(t, r, file, 1000); len(rejects) != want {
			t.Errorf("%q: rejects %q, want %d", file, rejects, want)
		}
	}
}

func TestCopiedTagsOfMessages(t *testing.T) {
	config := `{"commandType":"MESSAGE","timestampColumns":"t","defaultEntity":"e","entityTags":"site,Severity"}`
	_, _, _, err := upload(t, abi.OpenRequest{Config: json.RawMessage(config)}, "", 1)
	if want := "csv configuration: entityTags: severity is a field of messages, not a tag"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func FuzzParser(f *testing.F) {
	f.Add(`{"timestampColumns":"t","defaultEntity":"e"}`, "t,a\n2021-05-03T10:00:00Z,1\n", 3)
	f.Add(`{"header":["t","a"],"textQualifier":"'","comment":"#","ignoreLineErrors":true}`, "'a''b',\r'c\n", 1)
	f.Add(`{"fieldLengths":[1,2],"padding":"_","skipLines":1}`, "x\ny_é\n", 2)
	f.Add(`{"lineDelimiter":";","timestampColumns":"t","timestampPattern":"yyyy-MM-dd HH:mm[ VV]","timezoneDiffColumn":"o","defaultEntity":"e","skipLines":1,
		"ignoreLineErrors":true,"entityTags":"b"}`, "x\nt,o,a;2021-05-03 10:00 Asia/Tokyo,5.5,1;\n2021-05-03 10:00,+02:00,2", 7)
	f.Add(`{"ignoreLineErrors":true,"filter":"number('a') > 0","schema":"select('#row=2-*').addSeries().timestamp(0).entity(notEmptyUp(row, 1)).metric(cell(1, col))"}`, "t,a\n2,,5\n,x\n\"", 3)
	f.Fuzz(func(t *testing.T, config, file string, size int) {
		if size < 1 || len(file)/size > 1000 || !json.Valid([]byte(config)) {
			return
		}
		r := abi.OpenRequest{Config: json.RawMessage(config)}
		got, _, lines, _ := upload(t, r, strings.ToValidUTF8(file, "?"), size)
		whole, _, all, _ := upload(t, r, strings.ToValidUTF8(file, "?"), len(file)+1)
		if !slices.Equal(got, whole) || lines != all {
			t.Errorf("chunks of %d change the result:\n%q\n%q", size, got, whole)
		}
	})
}
