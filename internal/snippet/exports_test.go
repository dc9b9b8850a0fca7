package snippet

import (
	"strings"
	"testing"
)

// An expression that sets exports is not the value: the guest reads the exports.
func TestExports(t *testing.T) {
	const property, called, itself = "__evaluated()", ")())", "))"
	for code, want := range map[string]string{
		`exports.a = 1`:                               property,
		`exports . a . b = 1`:                         property,
		`exports['a'] = 1;`:                           property,
		`module.exports.a = () => 1`:                  property,
		`module /* its */ .exports.a = 1`:             property,
		`module.exports = () => 1`:                    called,
		`module.exports = async function () { }`:      called,
		`module.exports = (() => 1)`:                  called,
		`module.exports = { a: 1 }`:                   itself,
		`module.exports = f`:                          itself,
		`module.exports = a => 1, 2`:                  itself,
		`exports = module.exports = { a: 1 }`:         itself,
		`exports = 1`:                                 itself,
		`exports.a`:                                   itself,
		`exports.a == 1`:                              itself,
		`module.id = 1`:                               itself,
		`a.exports.b = 1`:                             itself,
		`const exports = {}; exports.a = 1`:           itself,
		`const module = {}; module.exports = () => 1`: itself,
	} {
		p, err := Module(code)
		if err != nil || !strings.HasSuffix(strings.TrimRight(p.Code(), ";"), want) || want == itself && strings.HasSuffix(p.Code(), called) {
			t.Errorf("%s became %v\n%s", code, err, p.Code())
		}
	}
	p, err := Module("if (a) return 2; exports.a = 1")
	if err != nil || strings.Contains(p.Code(), "return await") {
		t.Errorf("with a return: %v\n%s", err, p.Code())
	}
}
