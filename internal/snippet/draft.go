package snippet

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// A draft is the text of a snippet after some changes, together with the changes.
type draft struct {
	snippet, text string
	stages        []Stage // in the order of the changes
}

// newDraft returns the draft of code without a byte order mark, which counts in no column.
func newDraft(code string) draft {
	code = strings.TrimPrefix(code, bom)
	return draft{snippet: code, text: code}
}

const bom = "\ufeff"

// A Stage is one change of a snippet: an edit, or a translation by esbuild.
type Stage struct {
	Pieces []Piece // of an edit, in order; none for a translation

	From, To []byte // the text before and after a translation
	Map      []byte // its source map
}

// A Piece is a part of the text after edits: offset After corresponds to offset Before in the previous text.
// It is unchanged if Copied.
type Piece struct {
	After, Before int
	Copied, Known bool
}

// original maps an offset after the change to the offset before it. For inserted text, and for code that esbuild
// has added, it returns the nearest offset, and known is false.
func (s Stage) original(offset int) (before int, known bool) {
	if len(s.Pieces) == 0 {
		return newTranslation(string(s.From), string(s.To), s.Map).Origin(offset)
	}
	// of several pieces at one offset, only the last is not empty
	i := sort.Search(len(s.Pieces), func(i int) bool { return s.Pieces[i].After > offset }) - 1
	p := s.Pieces[max(i, 0)] // the first one starts at 0
	if p.Copied {
		return p.Before + offset - p.After, true
	}
	return p.Before, p.Known
}

// A translation maps offsets in code that esbuild made to the code that it was made of.
type translation struct {
	from, to indexed
	sources  *SourceMap
}

func newTranslation(from, to string, sources []byte) translation {
	file, _ := ParseSourceMap(sources) // empty if they are malformed: another process may have sent them
	return translation{indexOf(from), indexOf(to), file}
}

// Origin returns the offset in the file of an offset of the code that esbuild made. For code that esbuild has
// added, it is the nearest offset before it, and known is false if there is none.
func (t translation) Origin(offset int) (before int, known bool) {
	p, known := t.sources.Original(t.to.position(offset))
	if !strings.HasPrefix(p.Source, sourceName) {
		return 0, false // none, or a comment in the code named another source
	}
	before = t.from.offset(p.Line, p.Column)
	return max(before, 0), known && before >= 0
}

// origin maps an offset of the text to the snippet.
func (d draft) origin(offset int) (before int, known bool) {
	known = true
	for i := len(d.stages) - 1; i >= 0; i-- {
		var ok bool
		offset, ok = d.stages[i].original(offset)
		known = known && ok
	}
	return offset, known
}

func (d draft) with(text string, s Stage) draft {
	return draft{d.snippet, text, append(slices.Clip(d.stages), s)}
}

// An edit replaces a part of the draft by text.
type edit struct {
	span
	text string
	// moved: text is equivalent to the original text at from.
	moved bool
	from  int
}

func insert(at int, text string) edit { return edit{span: span{at, at}, text: text} }

func replace(at span, text string) edit { return edit{span: at, text: text} }

// edit applies edits, which must not overlap. Insertions at the same offset keep their
// order.
func (d draft) edit(edits []edit) draft {
	if len(edits) == 0 {
		return d
	}
	slices.SortStableFunc(edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	var b strings.Builder
	var pieces []Piece
	last := 0
	for _, e := range edits {
		pieces = append(pieces, Piece{b.Len(), last, true, true})
		b.WriteString(d.text[last:e.start])
		if e.text != "" {
			if !e.moved {
				e.from = e.start
			}
			pieces = append(pieces, Piece{b.Len(), e.from, false, e.moved})
			b.WriteString(e.text)
		}
		last = e.end
	}
	if last < len(d.text) {
		pieces = append(pieces, Piece{b.Len(), last, true, true})
		b.WriteString(d.text[last:])
	}
	return d.with(b.String(), Stage{Pieces: pieces})
}
