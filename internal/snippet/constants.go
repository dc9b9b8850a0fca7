package snippet

import (
	"maps"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// guardConstants makes assignments to constants throw, as V8 does for const: they become assignments
// to members of the guest's object.
func (f *emitter) guardConstants(object string) {
	constants := map[string]bool{}
	for _, of := range []map[string]Declared{f.declared, f.declares} {
		for name, d := range of {
			constants[name] = d&Constant != 0
		}
	}
	maps.DeleteFunc(constants, func(_ string, is bool) bool { return !is })
	if len(constants) == 0 || object == "" {
		return
	}
	places := f.assignable(constants)
	if len(places) == 0 {
		return
	}
	for _, at := range f.assignments(slices.Sorted(maps.Keys(constants))) {
		name, known := places[at]
		if !known {
			continue
		}
		with := object + "." + name.text
		if name.shorthand {
			with = name.text + ": " + with
		}
		f.edits = append(f.edits, replace(span{at, at + len(name.text)}, with))
	}
}

// A place is an occurrence of a name that may be assigned to. A shorthand is a property of an object
// pattern.
type place struct {
	text      string
	shorthand bool
}

// object stands for the brace of an object or an object pattern, not of a block.
const object = 'o'

var (
	beforeObject  = setOf("(", ",", "[", "=", "?", "return", "&&", "||", "??")
	afterAssigned = setOf("++", "--", "]", "}", ",", "of", "in")
)

// assignable finds possible assignments to the names, other than their declarations, by offset.
func (f *emitter) assignable(names map[string]bool) map[int]place {
	declared := map[int]bool{}
	for _, d := range f.decls {
		for _, t := range d.targets {
			declared[t.start] = true
		}
	}
	places := map[int]place{}
	var brackets []byte
	l := lexer{code: f.text}
	before, name := "", token{kind: notAToken}
	for {
		t := l.next()
		text := f.text[t.start:t.end]
		if name.kind == word {
			isOperator := strings.HasSuffix(text, "=") && !comparisons[text]
			if isOperator || afterAssigned[text] || increments[before] {
				short := len(brackets) > 0 && brackets[len(brackets)-1] == object && (before == "{" || before == ",") && (text == "}" || text == "," || text == "=")
				places[name.start] = place{f.text[name.start:name.end], short}
			}
			before = f.text[name.start:name.end]
		}
		if t.kind == atEnd || t.kind == notAToken {
			return places
		}
		name = token{kind: notAToken}
		if t.kind == word && names[text] && !declared[t.start] {
			name = t
			continue
		}
		isObject := beforeObject[before] || before == ":" && len(brackets) > 0 && brackets[len(brackets)-1] == object
		switch before = text; {
		case text == "{" && isObject:
			brackets = append(brackets, object)
		case text == "(", text == "[", text == "{":
			brackets = append(brackets, text[0])
		case text == ")", text == "]", text == "}":
			brackets = brackets[:max(0, len(brackets)-1)]
		}
	}
}

// assignments returns the assignments of the code to variables of these names that it does not declare
// in any form. esbuild resolves all scopes, and warns of assignments to constants.
func (f *emitter) assignments(names []string) (offsets []int) {
	code := []byte(f.text)
	for _, s := range f.list { // a function cannot contain them
		at := s.span
		if s.kind == exporting || s.kind == defaulting {
			at.end = max(s.value.start, s.start)
			if s.value.end == 0 {
				at.end = s.end
			}
		}
		if s.isModuleSyntax() {
			for i := at.start; i < at.end; i++ {
				if code[i] != '\n' && code[i] != '\r' {
					code[i] = ' '
				}
			}
		}
	}
	before := "const " + strings.Join(names, "=0,") + "=0;async()=>{"
	text := before + string(code) + "\n}"
	result := api.Transform(text, api.TransformOptions{Loader: api.LoaderJS, Target: api.ESNext, LogLevel: api.LogLevelSilent})
	d := draft{text: text}
	for _, w := range result.Warnings {
		if w.ID == "assign-to-constant" {
			offsets = append(offsets, d.offset(w)-len(before))
		}
	}
	return offsets
}
