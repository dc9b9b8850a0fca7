package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
)

func TestInterleaved(t *testing.T) {
	for limit, want := range map[int64][]Piece{
		16: {{"stdout", "ab"}, {"stderr", "err"}, {"stdout", "ümore"}, {"stderr", "\xff\xe2\x82"}},
		3:  {{"stdout", "ab"}, {"stderr", "err"}, {"stdout", "\xc3"}},
		0:  {},
	} {
		n := NewInterleaved(limit)
		var o runtime.RunOptions
		n.Attach(&o)
		o.OnStdout([]byte("a"))
		o.OnStdout([]byte("b\xc3"))
		o.OnStderr([]byte("err"))
		o.OnStdout([]byte("\xbcmore"))
		o.OnStderr([]byte("\xff\xe2\x82"))
		if diff := cmp.Diff(want, n.Pieces()); diff != "" {
			t.Errorf("limit %d: (-want +got)\n%s", limit, diff)
		}
	}
}
