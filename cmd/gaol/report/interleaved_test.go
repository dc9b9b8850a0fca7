package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/internal/strictjson"
	"gaol/runtime"
)

func TestInterleaved(t *testing.T) {
	for limit, want := range map[int64][]Piece{
		16: pieces("stdout", "ab", "stderr", "err", "stdout", "ümore", "stderr", "\xff\xe2\x82"),
		3:  pieces("stdout", "ab", "stderr", "err", "stdout", "\xc3"),
		0:  {},
	} {
		var n Interleaved
		var o runtime.RunOptions
		n.Streams(limit).Attach(&o)
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

// pieces makes a list of pairs of a stream and a text.
func pieces(pairs ...string) (list []Piece) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, Piece{Stream: pairs[i], Text: Text(pairs[i+1])})
	}
	return list
}

func TestPieceJSON(t *testing.T) {
	line, err := strictjson.Encode(pieces("stdout", "<a>\xff", "stderr", ""), "")
	if want := `[{"stream":"stdout","text":"<a>\ufffd"},{"stream":"stderr","text":""}]` + "\n"; err != nil || string(line) != want {
		t.Errorf("%s, %v, want %s", line, err, want)
	}
}
