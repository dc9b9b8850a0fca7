package landlock

import "testing"

// TestPorts checks which connections are denied.
func TestPorts(t *testing.T) {
	needRoot(t)
	needABI(t, 4)
	before := []act{do("up"), do("listen", "8001"), do("listen", "8002")}
	list := []act{do("connect", "8001"), do("connect", "8002"), do("connect", "8003")}
	for _, tc := range []struct {
		name  string
		ports *Ports
		want  string
	}{
		{"one", &Ports{Allowed: []uint16{8001}}, "ok EACCES EACCES"},
		{"none", &Ports{}, "EACCES EACCES EACCES"},
		{"not handled", nil, "ok ok ECONNREFUSED"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ruleset := makeBelow(t, t.TempDir(), &Ruleset{ConnectTCP: tc.ports, Signals: true})
			if got := run(t, ruleset, order{Before: before, Acts: list}); names(got) != tc.want {
				t.Errorf("%s, want %s", names(got), tc.want)
			}
		})
	}
}

// TestFastOpen checks that sendto with MSG_FASTOPEN bypasses the right to connect, and that
// a sysctl of the network namespace prevents that.
func TestFastOpen(t *testing.T) {
	needRoot(t)
	needABI(t, 4)
	const setting = "/proc/sys/net/ipv4/tcp_fastopen" // bit 0: for clients
	ruleset := makeBelow(t, t.TempDir(), &Ruleset{ConnectTCP: &Ports{}})
	for _, tc := range []struct {
		value, free, under string
	}{
		{"1", "ok ok", "ok EACCES"}, // the bypass
		{"0", "ENOTSUP ok", "ENOTSUP EACCES"},
		{"2", "ENOTSUP ok", "ENOTSUP EACCES"},
	} {
		o := order{
			Before: []act{do("up"), do("sysctl", setting, tc.value), do("listen", "8001")},
			Acts:   []act{do("fast open", "8001"), do("connect", "8001")},
		}
		if got := run(t, nil, o); names(got) != tc.free {
			t.Errorf("tcp_fastopen=%s, no ruleset: %s, want %s", tc.value, names(got), tc.free)
		}
		switch got := names(run(t, ruleset, o)); got {
		case tc.under:
		case "EACCES EACCES":
			t.Logf("tcp_fastopen=%s: this kernel denies it", tc.value)
		default:
			t.Errorf("tcp_fastopen=%s: %s, want %s", tc.value, got, tc.under)
		}
	}
}

// TestMultipath checks that a multipath TCP socket, which falls back to plain TCP, bypasses
// the right to connect, and that a sysctl prevents that.
func TestMultipath(t *testing.T) {
	needRoot(t)
	needABI(t, 4)
	ruleset := makeBelow(t, t.TempDir(), &Ruleset{ConnectTCP: &Ports{}})
	o := order{Before: []act{do("up"), do("listen", "8001")}, Acts: []act{do("mptcp", "8001"), do("connect", "8001")}}
	if got := names(run(t, nil, o)); got != "ok ok" {
		t.Skip("this kernel lacks multipath TCP: ", got)
	}
	closed := o
	closed.Before = append([]act{do("sysctl", "/proc/sys/net/mptcp/enabled", "0")}, o.Before...)
	if got := names(run(t, ruleset, closed)); got != "ENOPROTOOPT EACCES" {
		t.Errorf("net.mptcp.enabled=0: %s", got)
	}
	switch got := names(run(t, ruleset, o)); got {
	case "ok EACCES": // the bypass
	case "EACCES EACCES":
		t.Log("this kernel denies it")
	default:
		t.Error(got)
	}
}
