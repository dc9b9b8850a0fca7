package snippet

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// A draft is a snippet on its way to a program: the text as it is now, and the way back.
type draft struct {
	snippet string
	text    string
	stages  []stage // from the snippet on
}

func newDraft(code string) draft { return draft{snippet: code, text: code} }

// A stage leads from an offset after a change back to the one before it. What the change
// itself put there has the nearest one, and known is false.
type stage interface {
	original(offset int) (before int, known bool)
}

// origin leads from an offset of the text back to the snippet.
func (d draft) origin(offset int) (before int, known bool) {
	known = true
	for i := len(d.stages) - 1; i >= 0; i-- {
		var ok bool
		offset, ok = d.stages[i].original(offset)
		known = known && ok
	}
	return offset, known
}

func (d draft) with(text string, s stage) draft {
	return draft{d.snippet, text, append(slices.Clip(d.stages), s)}
}

// An edit puts text in the place of a part of the draft.
type edit struct {
	span
	text string
	// moved: text is what stood at from, in other words.
	moved bool
	from  int
}

func insert(at int, text string) edit { return edit{span: span{at, at}, text: text} }

func replace(at span, text string) edit { return edit{span: at, text: text} }

// edit makes changes, which don't overlap. What is inserted at one place stays in its order.
func (d draft) edit(edits []edit) draft {
	if len(edits) == 0 {
		return d
	}
	slices.SortStableFunc(edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	var b strings.Builder
	var pieces edited
	last := 0
	for _, e := range edits {
		pieces = append(pieces, piece{b.Len(), last, true, true})
		b.WriteString(d.text[last:e.start])
		if e.text != "" {
			if !e.moved {
				e.from = e.start
			}
			pieces = append(pieces, piece{b.Len(), e.from, false, e.moved})
			b.WriteString(e.text)
		}
		last = e.end
	}
	if last < len(d.text) {
		pieces = append(pieces, piece{b.Len(), last, true, true})
		b.WriteString(d.text[last:])
	}
	return d.with(b.String(), pieces)
}

// edited is the stage of edits: pieces of the text, in order.
type edited []piece

// A piece of the text after edits stands at after, and came from before: as it was,
// where it is a copy.
type piece struct {
	after, before int
	copied, known bool
}

func (e edited) original(offset int) (int, bool) {
	// Of pieces that begin at the same place, the last one has something in it.
	i := sort.Search(len(e), func(i int) bool { return e[i].after > offset }) - 1
	p := e[i]
	if p.copied {
		return p.before + offset - p.after, true
	}
	return p.before, p.known
}
