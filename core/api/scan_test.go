package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestScanJSON(t *testing.T) {
	for _, good := range []string{
		`[]`, `{}`, ` [ ] `, `[{}]`, `{"a":[{"b":{}}],"c":null}`, `"x"`, `1`, `-1.5e+10`, `true`, `[1,2,[],{},"a\"b\u00e9\\"]`, `{"v":NaN}`, `[[],[]]`,
		"\t{\r\n\"a\" : 1 }\n", `{"a":1,"a":2}`,
	} {
		if err := scanJSON(good, 5); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, text := range map[string]string{
		``:             "JsonParseException: Unexpected end of input at offset 0",
		`[`:            "JsonParseException: Unexpected end of input at offset 1",
		`[1,]`:         `JsonParseException: Unexpected character "]" at offset 3`,
		`{"a":1,}`:     `JsonParseException: Unexpected character "}" at offset 7`,
		`{"a"}`:        `JsonParseException: Unexpected character "}" at offset 4`,
		`{a:1}`:        `JsonParseException: Unexpected character "a" at offset 1`,
		`[1 2]`:        `JsonParseException: Unexpected character "2" at offset 3`,
		`[}`:           `JsonParseException: Unexpected character "}" at offset 1`,
		`[1}`:          `JsonParseException: Unexpected character "}" at offset 2`,
		`{"a":1]`:      `JsonParseException: Unexpected character "]" at offset 6`,
		`[] []`:        `JsonParseException: Unexpected character "[" at offset 3`,
		`-`:            "JsonParseException: Unexpected end of input at offset 1",
		`1.`:           "JsonParseException: Unexpected end of input at offset 2",
		`1e`:           "JsonParseException: Unexpected end of input at offset 2",
		`+1`:           `JsonParseException: Unexpected character "+" at offset 0`,
		`nul`:          `JsonParseException: Unexpected character "n" at offset 0`,
		`"a` + "\n\"":  "JsonParseException: Unexpected character \"\\n\" at offset 2",
		`"\x"`:         `JsonParseException: Unexpected character "x" at offset 2`,
		`"\u12g4"`:     `JsonParseException: Unexpected character "g" at offset 5`,
		`Infinity`:     `JsonParseException: Unexpected character "I" at offset 0`,
		`[[[[[["x"]]]`: "JSON is nested deeper than limits.depth (5 levels)",
	} {
		if err := scanJSON(bad, 5); err == nil || err.Error() != text {
			t.Errorf("%s: %v, want %s", bad, err, text)
		}
	}
}

// What the scanner lets pass, gjson reads to its end, and what encoding/json takes passes, within the depth.
func FuzzScanJSON(f *testing.F) {
	for _, seed := range []string{`[]`, `{"a":[1,2,{"b":"c\u0041"}]}`, `[NaN,-0.5e3]`, `{"a":`, `[[[[[[`, "\"\xff\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := scanJSON(text, 64)
		valid := json.Valid([]byte(text))
		if valid && err != nil && !strings.Contains(err.Error(), "limits.depth") {
			t.Fatalf("valid JSON %q is refused: %v", text, err)
		}
		// Beside NaN the scanner is lenient about leading zeros only.
		if !valid && err == nil && !strings.Contains(text, "NaN") && !strings.Contains(text, "0") {
			t.Fatalf("%q is accepted", text)
		}
		if err == nil {
			gjson.Parse(text).ForEach(func(_, _ gjson.Result) bool { return true })
		}
	})
}

func TestAppendString(t *testing.T) {
	for _, text := range []string{"", "plain", "a\"b\\c", "\x00\x1f\t\r\n", "äß表", "<&>", "\u2028"} {
		var back string
		if err := json.Unmarshal(appendString(nil, text), &back); err != nil || back != text {
			t.Errorf("%q: %q %v", text, back, err)
		}
	}
	if got := string(appendString(nil, "a\xffb")); got != "\"a\ufffdb\"" {
		t.Errorf("not UTF-8: %s", got)
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]bool{"a": true, "Ä": true, "a b": false, "a\tb": false, "a\u00a0b": false, "a\"=\\/*?": true, "\x7f": false} {
		if got := validName(text); got != want {
			t.Errorf("validName(%q) = %v", text, got)
		}
	}
	for text, want := range map[string]string{" a ": "a", "a": "a", "\t\r\n": "", "a b": "a b", "\u00a0é\x00": "é", "": ""} {
		if got := trimmed(text); got != want {
			t.Errorf("trimmed(%q) = %q", text, got)
		}
	}
	for pattern, want := range map[string]bool{"*": true, "env.*": true, "env.a.b": true, "*.b": true, "e*a*b": true, "env": false, "env.*.c": false, "*b*b": false} {
		if got := likeName(pattern, "env.a.b"); got != want {
			t.Errorf("likeName(%q) = %v", pattern, got)
		}
	}
	for text, want := range map[string]int64{"5": 5, "1620036030000.9": 1620036030000, "-1.9": -1, "1e3": 1000, "1e300": 9223372036854775807} {
		if got, ok := parseInteger(text); !ok || got != want {
			t.Errorf("parseInteger(%q) = %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "x", "NaN", "1 2"} {
		if _, ok := parseInteger(text); ok {
			t.Errorf("parseInteger(%q) succeeds", text)
		}
	}
}
