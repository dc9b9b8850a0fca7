package notify

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Strings may end just before an unreadable page.
func TestReadPath(t *testing.T) {
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	if err := unix.Mprotect(memory[2*page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("p", 400)
	tests := []struct {
		name, text string
		at         int
		want       string
	}{
		{"whole", "/etc/passwd\x00more", 100, "/etc/passwd"},
		{"empty", "\x00", 100, ""},
		{"any bytes", "\xff\n\x1b[2J\x00", 100, "\xff\n\x1b[2J"},
		{"over a page's end", "/etc/passwd\x00", page - 4, "/etc/passwd"},
		{"long", long, 100, long[:maxPath]},
		{"as long as the limit", long[:maxPath] + "\x00", page, long[:maxPath]},
		{"up to the end of memory", "/etc/passwd\x00", 2*page - 12, "/etc/passwd"},
		{"over the end of memory", "/etc", 2*page - 4, "/etc"},
		{"unreadable", "", 2 * page, ""},
	}
	for _, test := range tests {
		copy(memory[:2*page], bytes.Repeat([]byte{'#'}, 2*page))
		copy(memory[:2*page][min(test.at, 2*page):], test.text)
		if got := readPath(os.Getpid(), address(memory)+uint64(test.at)); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	for _, bad := range []uint64{0, 1, 1 << 63, ^uint64(0), ^uint64(0) - 100} {
		if got := readPath(os.Getpid(), bad); got != "" {
			t.Errorf("%#x: %q", bad, got)
		}
	}
	if got := readPath(1<<30, address(memory)); got != "" {
		t.Errorf("missing process: %q", got)
	}
}
