package snippet

import (
	"encoding/json"
	"slices"
)

// unbound returns the names that the code assigns to and may not declare.
func (p *parser) unbound() (names []string) {
	for _, name := range p.assigned {
		isName := keywords[name] == 0 && !isCommonJS(name) && name[0] != '#'
		if isName && !slices.Contains(p.locals, name) && !slices.Contains(p.declared, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// orScript makes a program a script if it assigns to names that it does not declare, which modules
// refuse, and has nothing that only modules have.
func (c *compiler) orScript(p parsed) parsed {
	if c.module && !p.isModule && !p.script && len(p.free) > 0 {
		p.script = len((&emitter{parsed: p}).assignments(p.free)) > 0
	}
	return p
}

// inModule returns a module that runs a script, whose positions in stack traces are those of the
// module. Its own frame has a name as Node's frames have, which stack traces leave out.
func inModule(script string) string {
	text, _ := json.Marshal(script + "\n//# sourceURL=") // is valid UTF-8
	return "(0, eval)(" + string(text) + " + import.meta.url)\n//# sourceURL=node:snippet"
}
