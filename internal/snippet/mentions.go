package snippet

// mentions bound the messages about two places with the same name more closely than
// countDiagnostics. Each is about two mentions of the name, so that esbuild reads at most the
// bytes from its first to its last one. A mention that only reads the name cannot have a
// message: one that a dot, a bracket or a call follows.
type mentions struct {
	names  map[string]*mention
	last   *mention // of the last token, or nil
	before string   // the token before it
}

type mention struct {
	first, last, count int
	always             bool // count it even if a bracket follows
}

// reservedInModules are names that esbuild rejects in modules. The message is also about the
// export that makes the code a module, which may be anywhere. A class may have only one
// constructor.
var reservedInModules = setOf("implements", "interface", "let", "package", "private", "protected", "public", "static",
	"yield", "await", "eval", "arguments", "with", "delete", "constructor")

// declaring are words before a name that is declared even if a bracket follows.
var declaring = setOf("function", "*", "namespace", "module")

// add records a name at an offset of code with size bytes.
func (m *mentions) add(name, before string, at, size int) {
	w := m.names[name]
	if w == nil {
		w = &mention{first: at, last: at}
		m.names[name] = w
	}
	if reservedInModules[name] {
		w.first, w.last, w.always = 0, size, true
	}
	w.count++
	w.last = max(w.last, at)
	m.last, m.before = w, before
}

// next drops the last name if the token after it shows that it is only read.
func (m *mentions) next(text string) {
	switch {
	case m.last == nil, m.last.always, declaring[m.before]:
	case text == "." || text == "?." || text == "[" || text == "(":
		m.drop()
	}
	m.last = nil
}

// drop forgets the last name.
func (m *mentions) drop() {
	if m.last != nil && m.last.count > 0 {
		m.last.count--
	}
	m.last = nil
}

// bytes returns how many bytes esbuild reads at most.
func (m *mentions) bytes() (n int) {
	for _, w := range m.names {
		n += max(0, w.count-1) * (w.last - w.first)
	}
	return n
}
