package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
)

func TestInterleaved(t *testing.T) {
	for limit, want := range map[int64][]Piece{
		16: {{"stdout", text("ab")}, {"stderr", text("err")}, {"stdout", text("ümore")}, {"stderr", text("\xff\xe2\x82")}},
		3:  {{"stdout", text("ab")}, {"stderr", text("err")}, {"stdout", text("\xc3")}},
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

func TestPieceJSON(t *testing.T) {
	line, err := Line([]Piece{{"stdout", text("<a>\xff")}, {"stderr", text{}}})
	if want := `[{"stream":"stdout","text":"<a>\ufffd"},{"stream":"stderr","text":""}]` + "\n"; err != nil || line != want {
		t.Errorf("%s, %v, want %s", line, err, want)
	}
}
