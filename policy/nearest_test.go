package policy

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestNearestEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"https://api.example.com/v1?q=a:b":    "tcp://api.example.com:443",
		"http://user:pw@API.example.com:8080": "tcp://api.example.com:8080",
		"http://[::1]:8080/":                  "tcp://[::1]:8080",
		"api.example.com":                     "tcp://api.example.com:*",
		"api.example.com:443":                 "tcp://api.example.com:443",
		"*":                                   "tcp://*:*",
		"*.example.com":                       "tcp://*.example.com:*",
		"tcp://.example.com:443":              "tcp://*.example.com:443",
		"tcp://Example.com.:443":              "tcp://example.com:443",
		"tcp://example.com":                   "tcp://example.com:*",
		"udp://localhost":                     "udp://localhost:*",
		"dns://Example.com.":                  "dns://example.com",
		"10.1.2.3/8":                          "tcp://10.0.0.0/8:*",
		"fd00::1/8":                           "tcp://[fd00::/8]:*",
		"2001:DB8::1":                         "tcp://[2001:db8::1]:*",
		"tcp://[2001:db8:0::1]:443":           "tcp://[2001:db8::1]:443",
		"tcp://api.*.com:1":                   "", // *.com allows far more
		"tcp://a:0":                           "",
		"icmp://example.com":                  "",
		"":                                    "",
		"://":                                 "",
		"https://":                            "",
	} {
		p := Permissions{Network: Scope{Rules: []Rule{{Mode: Allow, Patterns: []string{text}}}}}
		bad, ok := errors.AsType[*FormatError](p.Check())
		if !ok || bad.Nearest != want {
			t.Errorf("%q: nearest %+v, want %q", text, bad, want)
		}
	}
}

// The nearest rules for addresses of the loopback device are accepted, also where single ports are
// not.
func TestNearestLocalhost(t *testing.T) {
	for _, rule := range []Rule{
		{Mode: Allow, Patterns: []string{"tcp://127.0.0.1:80"}},
		{Mode: Allow, Patterns: []string{"udp://[::1]:53"}},
		{Mode: Allow, Operations: []Operation{"listen"}, Patterns: []string{"tcp://0.0.0.0:80"}},
		{Mode: Allow, Operations: []Operation{"listen"}, Patterns: []string{"tcp://example.com:80"}},
	} {
		p := Permissions{Network: Scope{Rules: []Rule{rule}}}
		_, err := Lower(p, World{})
		refused, ok := errors.AsType[*RuleError](err)
		if !ok {
			t.Errorf("%v: %v", rule, err)
			continue
		}
		p.Network.Rules[0].Patterns = []string{refused.Nearest}
		if _, err := Lower(p, World{}); err != nil {
			text, _ := json.Marshal(p)
			t.Errorf("%s: %v", text, err)
		}
	}
}
