package snippet

// Encoded is a program in a form for another process.
type Encoded struct {
	Text             []byte
	Explicit, Script bool
	Declares         map[string]Declared
	Stages           []Stage // that led to Text
}

// Encode returns the program for another process.
func (p *Program) Encode() Encoded {
	return Encoded{[]byte(p.text), p.Explicit, p.script, p.Declares, p.draft.stages}
}

// Decode returns the program that another process has compiled from a snippet. The other process need not be
// trusted: its stages determine positions only.
func (e Encoded) Decode(snippet string) *Program {
	d := newDraft(snippet)
	d.text, d.stages = string(e.Text), e.Stages
	p := newProgram(d, e.Explicit, e.Script)
	p.Declares = e.Declares
	return p
}
