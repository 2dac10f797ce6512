package command

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
)

func TestParseStream(t *testing.T) {
	for line, want := range map[string]Stream{
		"csv p:meters": {Format: "csv", Parser: "meters", Params: map[string]string{}},
		"CSV p:meters e:a ep:b- et:x,y m:c mp:d. mt:z z:Europe/Berlin o:30 t:Dc=EU t:a=1": {Format: "csv", Parser: "meters", Zone: "Europe/Berlin",
			Timeout: 30 * time.Second, Tags: core.Tags{{Name: "a", Value: "1"}, {Name: "dc", Value: "EU"}},
			Params: map[string]string{"default-entity": "a", "entity-prefix": "b-", "entity-tags": "x,y", "default-metric": "c", "metric-prefix": "d.",
				"metric-tags": "z", "t:dc": "EU", "t:a": "1"}},
		"nmon p:default e:HOST f:HOST_210503_1000.nmon z:CEST v:23 o:120": {Format: "nmon", Parser: "default", Zone: "CEST", File: "HOST_210503_1000.nmon",
			Timeout: 120 * time.Second, Params: map[string]string{"e": "HOST", "f": "HOST_210503_1000.nmon"}},
		`nmon p:default e:a f:"other file"`: {Format: "nmon", Parser: "default", File: "other file", Params: map[string]string{"e": "a", "f": "other file"}},
	} {
		got, ok, err := ParseStream([]byte(line))
		if !ok || err != nil {
			t.Errorf("%s: %v %v", line, ok, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
	for _, line := range []string{"csv", "csv e:a", "csv p:a q:b", "csv p:a o:0", "csv p:a o:86401", "csv p:a o:x", "csv p:a t:b=\"\"", "csv p:", "nmon p:a",
		"nmon p:a e:b", "nmon e:b f:c", "nmon p:a e:b f:c t:d=e", "nmon p:a e:b f:c o:-1"} {
		if _, ok, err := ParseStream([]byte(line)); !ok || core.CodeOf(err) != core.Invalid {
			t.Errorf("%s: %v %v", line, ok, err)
		}
	}
	for _, line := range []string{"series e:a m:b=1", "csvp p:a", "ping", ""} {
		if _, ok, _ := ParseStream([]byte(line)); ok {
			t.Errorf("%s is a stream", line)
		}
	}
}

func TestNative(t *testing.T) {
	for line, want := range map[string]bool{"series": true, " Property x": true, "METRIC\tm:a": true, "put a 1 1": false, "a.b 1 1": false, "": false, "messages": false,
		"propertyx": false} {
		if Native([]byte(line)) != want {
			t.Errorf("%q: want %v", line, want)
		}
	}
}
