package core

import "testing"

func TestClientName(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.7":            "192.0.2.7",
		"::ffff:192.0.2.7":     "192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2::":       "2001:db8:1:2::/64",
		"2001:db8:1:3:3:4:5:6": "2001:db8:1:3::/64",
		"fe80::1:2:3:4%eth0":   "fe80::/64",
		"::1":                  "::/64",
		"pipe":                 "pipe",
		"":                     "",
	} {
		if got := ClientName(from); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
}
