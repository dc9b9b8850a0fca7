package seccomp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Filter.Refusal returns a refusal for exactly the calls that the program sends to the
// listener.
func TestRefusalAgreesWithProgram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, from := range tableSets() {
		f, err := newFilter(from)
		if err != nil {
			t.Fatal(err)
		}
		if want := from.notify && from.restrictions != nil; f.Notify != want {
			t.Errorf("notify: %v, want %v", f.Notify, want)
		}
		p := make([]unix.SockFilter, len(f.Program)/unix.SizeofSockFilter)
		if _, err := binary.Decode(f.Program, binary.NativeEndian, p); err != nil {
			t.Fatal(err)
		}
		for nr, r := range numbered(native(t), Allowed, from.restrictions) {
			for _, args := range append(combinations(r), anyArguments(random), anyArguments(random)) {
				refusal, ok := f.Refusal(int(nr), args)
				got, _ := run(t, p, guestCall{native(t).audit, nr, args})
				want := unix.SECCOMP_RET_ERRNO | uint32(refusal.Errno)
				if from.notify {
					want = unix.SECCOMP_RET_USER_NOTIF
				}
				if ok && got != want || !ok && got == unix.SECCOMP_RET_USER_NOTIF {
					t.Fatalf("%s(%#x): %#x, and %+v, %v", r.Calls, args, got, refusal, ok)
				}
			}
		}
	}
}

// The first matching restriction of a call applies. One without a label returns its errno.
func TestRefusalInOrder(t *testing.T) {
	rows := slices.Concat([]Row{{Calls: "socket", Refuse: refuse(unix.EMFILE, is(0, unix.AF_INET6))}}, NoDatagrams, NoInternet)
	f, err := Compile(rows, true)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		family, kind uint64
		label        string
	}{
		{unix.AF_INET6, unix.SOCK_DGRAM, ""},
		{unix.AF_INET, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, "datagram"},
		{unix.AF_INET, unix.SOCK_STREAM, "socket"},
		{unix.AF_INET | garbage, unix.SOCK_RAW, "socket"},
		{unix.AF_UNIX, unix.SOCK_DGRAM, ""},
		{unix.AF_ALG, unix.SOCK_SEQPACKET, ""},
	}
	for _, test := range tests {
		got, ok := f.Refusal(unix.SYS_SOCKET, [6]uint64{test.family, test.kind})
		if ok != (test.label != "") || ok && got.Label != test.label {
			t.Errorf("%d, %d: %+v, %v, want %q", test.family, test.kind, got, ok, test.label)
		}
	}
	if got, ok := f.Refusal(-1, [6]uint64{}); ok {
		t.Errorf("call -1: %+v", got)
	}
}

// A restriction can label a denied call, which stays denied.
func TestRestrictDenied(t *testing.T) {
	restrictions := []Row{{Calls: "mount", Refuse: []Refusal{{Errno: unix.EACCES, Label: "test", Match: []Match{is(3, 1)}}}}}
	s := newSubject(t, native(t), tables{Allowed, Denied, restrictions, true})
	for flags, want := range map[uint64]uint32{
		0: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM),
		1: unix.SECCOMP_RET_USER_NOTIF,
	} {
		c := guestCall{s.audit, uint32(nr(t, "mount")), [6]uint64{3: flags}}
		s.compare(t, c)
		if got, _ := run(t, s.program, c); got != want {
			t.Errorf("flags %d: %#x, want %#x", flags, got, want)
		}
	}
}

func TestFiltersAreCached(t *testing.T) {
	get := func(rows []Row, notify bool) *Filter {
		f, err := Compile(rows, notify)
		if err != nil {
			t.Error(err)
		}
		return f
	}
	first := get(NoSpawn, true)
	if get(slices.Clone(NoSpawn), true) != first {
		t.Error("an equal set was compiled again")
	}
	if get(NoSpawn, false) == first || get(NoRename, true) == first {
		t.Error("another set has the same filter")
	}
	if !bytes.Equal(get(nil, true).Program, filter(t)) {
		t.Error("a listener without restrictions makes a difference")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if get(NoSpawn, true) != first {
				t.Error("an equal set was compiled again")
			}
		})
	}
	wg.Wait()
}

func TestCacheIsBounded(t *testing.T) {
	c := cache{filters: map[string]*Filter{}}
	for i := range 2 * maxFilters {
		row := Row{Calls: "read", Reason: fmt.Sprint(i), Refuse: refuse(unix.EPERM, is(0, 1))}
		if _, err := c.get(tables{allowed: Allowed, restrictions: []Row{row}}); err != nil {
			t.Fatal(err)
		}
		if len(c.filters) != i%maxFilters+1 {
			t.Fatalf("%d filters after %d", len(c.filters), i+1)
		}
	}
	if _, err := c.get(tables{restrictions: []Row{{Calls: "read"}}}); err == nil || len(c.filters) != maxFilters {
		t.Errorf("an error was cached: %d filters, %v", len(c.filters), err)
	}
}
