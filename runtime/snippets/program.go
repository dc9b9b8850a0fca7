package snippets

import (
	_ "embed"
	"encoding/json"
)

//go:embed harness.mjs
var harness string

// guestProgram is the argument of the functions of harness.mjs.
type guestProgram struct {
	Code    string `json:"code"`    // an ES module: the snippet
	Adapter string `json:"adapter"` // an ES module
}

// module returns an ES module for the sandbox: the harness, and a call of one of its functions.
func (p guestProgram) module(function string) (string, error) {
	text, err := json.Marshal(p)
	return harness + function + "(" + string(text) + ");\n", err
}
