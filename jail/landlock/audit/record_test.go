package audit

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const stamp = "audit(1795289161.845:15): "

// denials are records of Linux 6.18.
var denials = []struct {
	name, line string
	want       Denial
}{
	{"file", `domain=10341cc56 blockers=fs.read_file path="/etc/passwd" dev="vda" ino=737`,
		Denial{Blockers: []string{"fs.read_file"}, Path: "/etc/passwd"}},
	{"two rights", `domain=10341cc56 blockers=fs.write_file,fs.read_file path="/dev/null" dev="devtmpfs" ino=3`,
		Denial{Blockers: []string{"fs.write_file", "fs.read_file"}, Path: "/dev/null"}},
	{"folder of a new file", `domain=10341cc56 blockers=fs.make_reg,fs.refer path="/tmp/spiketest/y" dev="vda" ino=9982078`,
		Denial{Blockers: []string{"fs.make_reg", "fs.refer"}, Path: "/tmp/spiketest/y"}},
	{"mount", `domain=10341cc56 blockers=fs.change_topology path="/mnt" dev="vda" ino=1201`,
		Denial{Blockers: []string{"fs.change_topology"}, Path: "/mnt"}},
	{"connect", `domain=10341cc56 blockers=net.connect_tcp daddr=127.0.0.1 dest=81`,
		Denial{Blockers: []string{"net.connect_tcp"}, Address: netip.MustParseAddrPort("127.0.0.1:81")}},
	{"connect by IPv6", `domain=10341cc56 blockers=net.connect_tcp daddr=::1 dest=81`,
		Denial{Blockers: []string{"net.connect_tcp"}, Address: netip.MustParseAddrPort("[::1]:81")}},
	{"port only", `domain=10341cc56 blockers=net.connect_tcp dest=443`,
		Denial{Blockers: []string{"net.connect_tcp"}, Address: netip.AddrPortFrom(netip.Addr{}, 443)}},
	{"signal", `domain=10341cc56 blockers=scope.signal opid=1 ocomm="process_api"`,
		Denial{Blockers: []string{"scope.signal"}}},
	{"hostile name", `domain=10341cc56 blockers=fs.read_file path=` + inHex("/x domain=1 blockers=fs.refer\n\"\xff") + ` dev="vda" ino=7`,
		Denial{Blockers: []string{"fs.read_file"}, Path: "/x domain=1 blockers=fs.refer\n\"\xff"}},
	{"name with punctuation", `domain=10341cc56 blockers=fs.read_file path="/x=domain=1,'\" dev="vda" ino=7`,
		Denial{Blockers: []string{"fs.read_file"}, Path: `/x=domain=1,'\`}},
	{"hostile program", `domain=10341cc56 blockers=scope.signal opid=7 ocomm=` + inHex("a domain=2"),
		Denial{Blockers: []string{"scope.signal"}}},
	{"unknown field", `domain=10341cc56 blockers=fs.read_file path="/x" dev="vda" ino=7 more=1`,
		Denial{Blockers: []string{"fs.read_file"}, Path: "/x"}},
}

func inHex(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }

func TestParseDenial(t *testing.T) {
	for _, tc := range denials {
		want := tc.want
		want.Domain = 0x10341cc56
		got, err := parseDenial(stamp + tc.line)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
			t.Errorf("%s:\n%s", tc.name, diff)
		}
	}
}

// TestParseErrors parses records that no kernel writes.
func TestParseErrors(t *testing.T) {
	for _, line := range []string{
		"",
		stamp,                       // empty, as AUDIT_EOE
		stamp + "blockers=fs.refer", // no domain
		stamp + "domain=xyz blockers=fs.refer",
		stamp + "domain=10000000000000000 blockers=fs.refer",  // 65 bits
		stamp + "domain=1 blockers=fs.refer path=/etc/passwd", // neither quoted nor hex
	} {
		if got, err := parseDenial(line); err == nil {
			t.Errorf("%.80q: %+v", line, got)
		}
	}
}

func TestParseDomain(t *testing.T) {
	for _, tc := range []struct {
		line string
		want domain // zero: an error
	}{
		{`domain=10341cc56 status=allocated mode=enforcing pid=13390 uid=0 exe="/tmp/audit.test" comm="exe"`,
			domain{id: 0x10341cc56, pid: 13390}},
		{`domain=10341cc56 status=deallocated denials=14`, domain{id: 0x10341cc56, ended: true}},
		{`domain=1 status=allocated mode=enforcing pid=7 uid=0 exe=` + inHex("/x pid=8") + ` comm=` + inHex("a pid=9"),
			domain{id: 1, pid: 7}},
		{`domain=1 status=allocated mode=enforcing pid=-7`, domain{}},
		{`domain=1 status=allocated mode=enforcing`, domain{}},
		{`status=deallocated`, domain{}},
	} {
		got, err := parseDomain(stamp + tc.line)
		if (err == nil) != (tc.want.id != 0) || err == nil && got != tc.want {
			t.Errorf("%s: %+v, %v", tc.line, got, err)
		}
	}
}

// FuzzRecord parses arbitrary text and checks the bounds of the result.
func FuzzRecord(f *testing.F) {
	for _, tc := range denials {
		f.Add(stamp + tc.line)
	}
	f.Add(stamp + "domain=1 status=allocated pid=7")
	f.Fuzz(func(t *testing.T, line string) {
		_, _ = parseDomain(line)
		d, err := parseDenial(line)
		if err != nil {
			return
		}
		if len(d.Blockers) == 0 || len(d.Path) > len(line) {
			t.Errorf("%q: %+v", line, d)
		}
	})
}

// FuzzPath parses records with names of a guest, which must not change other fields.
func FuzzPath(f *testing.F) {
	for _, name := range []string{"/x", "/x domain=1", `/"`, "/\x00", "/\n", "4142", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		value := `"` + name + `"`
		if strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' }) { // as audit_log_n_untrustedstring does
			value = inHex(name)
		}
		line := fmt.Sprintf("%sdomain=10341cc56 blockers=fs.read_file path=%s dev=\"vda\" ino=737", stamp, value)
		d, err := parseDenial(line)
		if err != nil || d.Path != name || d.Domain != 0x10341cc56 || len(d.Blockers) != 1 {
			t.Errorf("%q: %+v, %v", line, d, err)
		}
	})
}
