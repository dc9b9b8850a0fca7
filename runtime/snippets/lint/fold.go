package lint

import (
	"slices"
	"strconv"
	"strings"
)

// A text is the possible value of an expression. Unknown parts are zero bytes.
type text string

const (
	unknown    = "\x00"
	irrelevant = "\x01" // too long to be the name of a property that rules deny

	maxText  = 64 // bytes
	maxTexts = 16 // possible values of one expression
)

type foldState uint8

const (
	unfolded foldState = iota
	folding            // the value refers to itself
	folded
)

// fold returns the possible values of an expression; of a variable, only the first one. Parts that are not known without
// running the code are unknown.
func fold(n *node) []text {
	switch n.kind {
	case str:
		return []text{literal(n.name)}
	case template:
		return concat(n.kids...)
	case binary:
		return foldBinary(n)
	case conditional:
		return either(n.kids[1:]...)
	case sequence:
		if len(n.kids) > 0 {
			return fold(n.value())
		}
	case assign:
		return foldAssignment(n)
	case ident:
		if v := n.scope.find(n.name); v != nil {
			return v.fold()
		}
	case array:
		return join(n.kids, ",")
	case call:
		return foldCall(n)
	}
	return []text{unknown}
}

func (v *variable) fold() []text {
	if v.value == nil || v.state == folding {
		return []text{unknown}
	}
	if v.state == unfolded {
		v.state = folding
		v.folded = fold(v.value)
		v.state = folded
	}
	return v.folded
}

func literal(s string) text {
	if len(s) > maxText {
		return irrelevant
	}
	return text(strings.ReplaceAll(s, unknown, irrelevant))
}

// either returns the values of all expressions.
func either(list ...*node) (all []text) {
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
func concat(list ...*node) []text { return join(list, "") }

func join(list []*node, between text) []text {
	all := []text{""}
	for i, n := range list {
		parts := fold(n)
		if n.kind == spread {
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
func foldBinary(n *node) []text {
	var all []text
	for start := 0; start < len(n.kids); {
		end := start
		for end < len(n.ops) && n.ops[end] == "+" {
			end++
		}
		if end < len(n.ops) && !slices.Contains([]string{"||", "&&", "??"}, n.ops[end]) {
			return []text{unknown} // a comparison, or a number
		}
		all = append(all, concat(n.kids[start:end+1]...)...)
		start = end + 1
	}
	return limited(all)
}

func foldAssignment(n *node) []text {
	switch n.name {
	case "=", "||=", "&&=", "??=":
		return fold(n.value())
	case "+=":
		return concat(n.kids...)
	}
	return []text{unknown}
}

// foldCall folds String('a'), String.fromCharCode(97), and some methods of strings and
// arrays.
func foldCall(n *node) []text {
	callee, args := n.kids[0], n.kids[1:]
	if callee.isGlobal("String") && len(args) > 0 {
		return fold(args[0])
	}
	if callee.kind != member {
		return []text{unknown}
	}
	of := callee.kids[0]
	switch callee.name {
	case "concat":
		return concat(append([]*node{of}, args...)...)
	case "join":
		return foldJoin(of, args)
	case "toLowerCase":
		return mapped(fold(of), strings.ToLower)
	case "trim":
		return mapped(fold(of), strings.TrimSpace)
	case "toString", "valueOf", "normalize":
		return fold(of)
	case "fromCharCode", "fromCodePoint":
		if of.isGlobal("String") {
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

func foldJoin(of *node, args []*node) []text {
	if of.kind != array {
		return []text{unknown}
	}
	between := text(",")
	if len(args) > 0 {
		between = fold(args[0])[0]
	}
	return join(of.kids, between)
}

// characters returns the text of character codes.
func characters(list []*node) text {
	var b strings.Builder
	for _, n := range list[:min(len(list), maxText)] {
		code, err := strconv.ParseUint(n.name, 0, 21)
		if n.kind != str || err != nil || code == 0 {
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
