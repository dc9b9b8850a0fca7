package snippet

import "sync"

// A Stage is a change of a snippet in a form for another process.
type Stage struct {
	Pieces []Piece // of an edit; none for a translation

	From, To []byte // the text before and after a translation
	Map      []byte // its source map
}

// Stages returns the changes that led to Code.
func (p *Program) Stages() (list []Stage) {
	for _, s := range p.draft.stages {
		switch s := s.(type) {
		case edited:
			list = append(list, Stage{Pieces: s})
		case mapped:
			list = append(list, Stage{From: []byte(s.from), To: []byte(s.to), Map: s.sources()})
		}
	}
	return list
}

// Encoded is a program in a form for another process.
type Encoded struct {
	Text             []byte
	Explicit, Script bool
	Declares         map[string]Declared
}

// Encode returns the program without its Stages.
func (p *Program) Encode() Encoded { return Encoded{[]byte(p.text), p.Explicit, p.script, p.Declares} }

// Decode returns the program that another process has compiled from a snippet. load returns its
// Stages when a position is first needed. The other process need not be trusted: its stages
// determine positions only.
func (e Encoded) Decode(snippet string, load func() []Stage) *Program {
	d := newDraft(snippet)
	d.text = string(e.Text)
	p := newProgram(d, e.Explicit, e.Script)
	p.Declares = e.Declares
	p.load = sync.OnceValue(func() []stage { return restore(load()) })
	return p
}

// restore returns the stages. Numbers that cannot be right become 0.
func restore(list []Stage) (stages []stage) {
	for _, s := range list {
		if len(s.Pieces) == 0 {
			stages = append(stages, mapped{string(s.From), string(s.To), func() []byte { return s.Map }})
			continue
		}
		for i := range s.Pieces {
			p := &s.Pieces[i]
			p.After, p.Before = bounded(p.After), bounded(p.Before)
		}
		stages = append(stages, edited(s.Pieces))
	}
	return stages
}

// bounded returns an offset of some text.
func bounded(n int) int {
	const most = 64 * MaxCode // of translated code
	if n < 0 || n > most {
		return 0
	}
	return n
}
