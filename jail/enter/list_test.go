package enter

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"
)

func words(ws ...uint32) string {
	var b []byte
	for _, w := range ws {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	return string(b)
}

func long(n uint64) string { return string(binary.NativeEndian.AppendUint64(nil, n)) }

func TestEncode(t *testing.T) {
	const filter = "0123456789abcdef" // two instructions
	for _, tc := range []struct {
		name string
		list List
		want string
	}{
		{"empty list", List{}, words(0, 0, 0)},
		{"number", List{Steps: []Step{Umask(0o22)}}, words(1, 0, 0) + words(opUmask, 0o22) + long(0) + words(0, 0, 0, 0)},
		{"limit", List{Steps: []Step{Limit{7, 1 << 33}.Step()}}, words(1, 0, 0) + words(opLimit, 7) + long(1<<33) + words(0, 0, 0, 0)},
		{"no cgroup", List{Steps: []Step{Clone(nil, 1<<32)}}, words(1, 0, 0) + words(opClone, 0xffff_ffff) + long(1<<32) + words(0, 0, 0, 0)},
		{"four strings", List{Steps: []Step{Mount("a", "bc", "", 3, "d")}}, words(1, 0, 8) + words(opMount, 0) + long(3) + words(0, 2, 5, 6) + "a\x00bc\x00\x00d\x00"},
		{"two steps", List{Steps: []Step{Chdir("/"), Root("r")}},
			words(2, 0, 4) + words(opChdir, 0) + long(0) + words(0, 0, 0, 0) + words(opRoot, 0) + long(0) + words(2, 0, 0, 0) + "/\x00r\x00"},
		{"arguments and variables", List{Steps: []Step{Execute([]string{"a", "b", "c"}, []string{"D=d", "E="})}},
			words(1, 0, 13) + words(opExecute, 3) + long(2) + words(0, 2, 4, 6) + "a\x00b\x00c\x00D=d\x00E=\x00"},
		{"filter", List{Steps: []Step{Filter()}, Filter: []byte(filter)}, words(1, 2, 0) + words(opFilter, 0) + long(0) + words(0, 0, 0, 0) + filter},
	} {
		got, err := tc.list.encode()
		if err != nil || string(got) != tc.want {
			t.Errorf("%s:\n got %q, %v\nwant %q", tc.name, got, err, tc.want)
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		list List
		want error
	}{
		"a NUL":       {List{Steps: []Step{Chdir("/a\x00b")}}, nil},
		"a long text": {List{Steps: []Step{Execute([]string{"a", strings.Repeat("x", maxText)}, nil)}}, syscall.E2BIG},
	} {
		if b, err := tc.list.encode(); err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %d bytes, %v, want %v", name, len(b), err, tc.want)
		}
	}
}
