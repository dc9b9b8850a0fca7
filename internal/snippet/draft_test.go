package snippet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDraft(t *testing.T) {
	d := newDraft("abcdef")
	d = d.edit([]edit{
		replace(span{2, 4}, "XYZ"),
		insert(6, "!"),
		insert(2, "("),
		{span: span{0, 0}, text: "ef ", moved: true, from: 4},
	})
	d = d.edit([]edit{replace(span{0, 3}, ""), insert(3, "<")})
	if d.text != "<ab(XYZef!" {
		t.Fatalf("the text is %q", d.text)
	}
	type place struct {
		Before int
		Known  bool
	}
	var got []place
	for i := range len(d.text) + 1 {
		before, known := d.origin(i)
		got = append(got, place{before, known})
	}
	want := []place{
		{0, false}, {0, true}, {1, true}, // <ab
		{2, false}, {2, false}, {2, false}, {2, false}, // (XYZ
		{4, true}, {5, true}, {6, false}, {6, false}, // ef!
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if same := d.edit(nil); len(same.stages) != len(d.stages) {
		t.Error("no edits are a stage")
	}
}
