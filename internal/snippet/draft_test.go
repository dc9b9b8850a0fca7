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

func TestDecode(t *testing.T) {
	got := decode("AAAA,IAAM;;AACA,gBAAgB;A")
	want := []mapping{{0, 0, 0, 0}, {0, 4, 0, 6}, {2, 0, 1, 6}, {2, 16, 1, 22}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, tc := range []struct {
		line, column int
		want         mapping
		known        bool
	}{
		{0, 0, want[0], true}, {0, 3, want[0], true}, {0, 4, want[1], true}, {1, 0, want[1], false}, {2, 99, want[3], true},
	} {
		if m, known := find(got, tc.line, tc.column); m != tc.want || known != tc.known {
			t.Errorf("%d:%d maps to %+v, %v", tc.line, tc.column, m, known)
		}
	}
	if _, known := find(nil, 0, 0); known {
		t.Error("an empty map maps to a place")
	}
}

// A comment may claim that the code has another source, with a map: it is ignored.
func TestForeignSourceMap(t *testing.T) {
	const code = "const x: number = 1\nx\n//# sourceMappingURL=data:application/json;base64," +
		"eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbImEuanMiXSwibWFwcGluZ3MiOiJBQUFBO0FBQ0EifQ=="
	p, err := Module(code)
	if err != nil {
		t.Fatal(err)
	}
	if l, c, ok := p.Position(1, 1); ok {
		t.Errorf("%s\nleads to %d:%d", p.Code, l, c)
	}
}
