package service

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"gaol/runtime"
)

// Each event of the SDK has one for clients.
func TestTranslator(t *testing.T) {
	var tr translator
	for _, tc := range []struct {
		in   runtime.Event
		want string
	}{
		{runtime.StdoutEvent{Data: []byte("a\xe2\x82")}, `stdout {"text":"a"}`},
		{runtime.StderrEvent{Data: []byte("\xff")}, `stderr {"text":"\ufffd","bytes":"/w=="}`},
		{runtime.StdoutEvent{Data: []byte("\xac")}, `stdout {"text":"€"}`},
		{runtime.StdoutEvent{Data: []byte("\xe2")}, ``},
		{runtime.LogEvent{Log: runtime.Log{Level: runtime.LogWarn, Text: "w", At: time.Millisecond}}, `log {"level":"warn","text":"w","ms":1}`},
		{runtime.CallEvent{Call: runtime.Call{Name: "f", Duration: time.Millisecond, Arguments: 2, Error: "e"}}, `call {"name":"f","ms":1,"argumentsBytes":2,"resultBytes":0,"error":"e"}`},
		{
			runtime.ConnectEvent{Connection: runtime.Connection{Host: "h", Address: netip.MustParseAddrPort("[::1]:2"), Port: 2, Rule: "r", BytesIn: 3, BytesOut: 4, Duration: time.Millisecond, Outcome: "closed"}},
			`connect {"host":"h","address":"[::1]:2","port":2,"rule":"r","bytesIn":3,"bytesOut":4,"durationMs":1,"outcome":"closed"}`,
		},
		{runtime.ConnectEvent{}, `connect {"host":"","address":"","port":0,"rule":"","bytesIn":0,"bytesOut":0,"durationMs":0,"outcome":""}`},
		{
			runtime.DenialEvent{Denial: runtime.Denial{Scope: "fs", Operation: "read", Target: "/x", Rule: "fs.default", Count: 1, Source: runtime.SourceSeccomp}},
			`denial {"scope":"fs","operation":"read","target":"/x","rule":"fs.default","count":1,"source":"seccomp"}`,
		},
		{runtime.ExitEvent{}, `stdout {"text":"\ufffd","bytes":"4g=="}`},
		{runtime.ExitEvent{}, ``},
	} {
		got := ""
		for _, e := range tr.events(tc.in) {
			text, err := json.Marshal(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			got += string(e.Name) + " " + string(text)
		}
		if got != tc.want {
			t.Errorf("%#v: got %s, want %s", tc.in, got, tc.want)
		}
	}
}
