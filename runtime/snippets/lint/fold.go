package lint

import (
	"slices"
	"strconv"
	"strings"

	"gaol/internal/snippet"
)

// A text is the possible value of an expression. Unknown parts are zero bytes.
type text string

const (
	unknown    = "\x00"
	irrelevant = "\x01" // too long to be the name of a property that rules deny

	maxText  = 64 // bytes
	maxTexts = 16 // possible values of one expression
)

// fold returns the possible values of an expression; of a variable, only the first one. Parts that are not known without
// running the code are unknown.
func fold(n *snippet.Node) []text {
	switch n.Kind {
	case snippet.Literal:
		return []text{literal(n.Name)}
	case snippet.Template:
		return concat(n.Kids...)
	case snippet.Binary:
		return foldBinary(n)
	case snippet.Conditional:
		return either(n.Kids[1:]...)
	case snippet.Sequence:
		if len(n.Kids) > 0 {
			return fold(n.Value())
		}
	case snippet.Assign:
		return foldAssignment(n)
	case snippet.Identifier:
		if v := n.Scope.Find(n.Name); v != nil {
			return foldVariable(v)
		}
	case snippet.Array:
		return join(n.Kids, ",")
	case snippet.Call:
		return foldCall(n)
	}
	return []text{unknown}
}

func foldVariable(v *snippet.Variable) []text {
	if folded, done := v.Data.([]text); done {
		return folded
	}
	values := []text{unknown}
	v.Data = values // while it is folded: the value may refer to the variable
	if v.Value != nil {
		values = fold(v.Value)
	}
	v.Data = values
	return values
}

func literal(s string) text {
	if len(s) > maxText {
		return irrelevant
	}
	return text(strings.ReplaceAll(s, unknown, irrelevant))
}

// either returns the values of all expressions.
func either(list ...*snippet.Node) (all []text) {
	for _, n := range list {
		all = append(all, fold(n)...)
	}
	return limited(all)
}

// limited removes duplicates, and values beyond maxTexts.
func limited(list []text) []text {
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), maxTexts)]
}

// concat returns the values of expressions one after the other.
func concat(list ...*snippet.Node) []text { return join(list, "") }

func join(list []*snippet.Node, between text) []text {
	all := []text{""}
	for i, n := range list {
		parts := fold(n)
		if n.Kind == snippet.Spread {
			parts = []text{unknown}
		}
		var next []text
		for _, a := range all {
			for _, b := range parts {
				if i > 0 {
					a += between
				}
				next = append(next, literalOrUnknown(a+b))
			}
		}
		all = limited(next)
	}
	return all
}

func literalOrUnknown(t text) text {
	for strings.Contains(string(t), unknown+unknown) {
		t = text(strings.ReplaceAll(string(t), unknown+unknown, unknown))
	}
	if len(t) > maxText {
		return irrelevant
	}
	return t
}

// foldBinary folds + and, of lower precedence, ||, && and ??.
func foldBinary(n *snippet.Node) []text {
	var all []text
	for start := 0; start < len(n.Kids); {
		end := start
		for end < len(n.Ops) && n.Ops[end] == "+" {
			end++
		}
		if end < len(n.Ops) && !slices.Contains([]string{"||", "&&", "??"}, n.Ops[end]) {
			return []text{unknown} // a comparison, or a number
		}
		all = append(all, concat(n.Kids[start:end+1]...)...)
		start = end + 1
	}
	return limited(all)
}

func foldAssignment(n *snippet.Node) []text {
	switch n.Name {
	case "=", "||=", "&&=", "??=":
		return fold(n.Value())
	case "+=":
		return concat(n.Kids...)
	}
	return []text{unknown}
}

// foldCall folds String('a'), String.fromCharCode(97), and some methods of strings and
// arrays.
func foldCall(n *snippet.Node) []text {
	callee, args := n.Kids[0], n.Kids[1:]
	if callee.Name == "String" && callee.IsGlobal() && len(args) > 0 {
		return fold(args[0])
	}
	if callee.Kind != snippet.Member {
		return []text{unknown}
	}
	of := callee.Kids[0]
	switch callee.Name {
	case "concat":
		return concat(append([]*snippet.Node{of}, args...)...)
	case "join":
		return foldJoin(of, args)
	case "toLowerCase":
		return mapped(fold(of), strings.ToLower)
	case "trim":
		return mapped(fold(of), strings.TrimSpace)
	case "toString", "valueOf", "normalize":
		return fold(of)
	case "fromCharCode", "fromCodePoint":
		if of.Name == "String" && of.IsGlobal() {
			return []text{characters(args)}
		}
	}
	return []text{unknown}
}

func mapped(list []text, change func(string) string) []text {
	out := make([]text, len(list))
	for i, t := range list {
		out[i] = text(change(string(t)))
	}
	return out
}

func foldJoin(of *snippet.Node, args []*snippet.Node) []text {
	if of.Kind != snippet.Array {
		return []text{unknown}
	}
	between := text(",")
	if len(args) > 0 {
		between = fold(args[0])[0]
	}
	return join(of.Kids, between)
}

// characters returns the text of character codes.
func characters(list []*snippet.Node) text {
	var b strings.Builder
	for _, n := range list[:min(len(list), maxText)] {
		code, err := strconv.ParseUint(n.Name, 0, 21)
		if n.Kind != snippet.Literal || err != nil || code == 0 {
			return unknown
		}
		b.WriteRune(rune(code))
	}
	return literal(b.String())
}

// mayBe reports whether the text may be a name: its known parts must be at least half of it.
func (t text) mayBe(name string) bool {
	parts := strings.Split(string(t), unknown)
	if len(parts) == 1 {
		return string(t) == name
	}
	known := 0
	for _, part := range parts {
		known += len(part)
	}
	rest, found := strings.CutPrefix(name, parts[0])
	if !found || known*2 < len(name) {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		if _, rest, found = strings.Cut(rest, part); !found {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
