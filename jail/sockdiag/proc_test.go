package sockdiag

import (
	"net"
	"os"
	"slices"
	"testing"
)

// Listeners lists the servers of users, and no connections.
func TestListeners(t *testing.T) {
	own := func(uid int) bool { return uid == os.Getuid() }
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		want := l.Addr().(*net.TCPAddr).AddrPort()
		if list, err := Listeners(want.Port(), own); err != nil || len(list) != 1 || list[0] != want {
			t.Errorf("%v, %v, want %v", list, err, want)
		}
		if list, err := Listeners(0, own); err != nil || !slices.Contains(list, want) {
			t.Errorf("%v, %v", list, err)
		}
		if list, err := Listeners(want.Port(), func(int) bool { return false }); err != nil || len(list) != 0 {
			t.Errorf("of others: %v, %v", list, err)
		}
		client := c.LocalAddr().(*net.TCPAddr).AddrPort()
		if list, err := Listeners(client.Port(), own); err != nil || len(list) != 0 {
			t.Errorf("a connection is a server: %v, %v", list, err)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for _, text := range []string{"", "0100007F", "0100007:0050", "0100007F:10050", "00:0050", "0100007F00:0050"} {
		if a, ok := parseAddress(text); ok {
			t.Errorf("%q is %v", text, a)
		}
	}
}
