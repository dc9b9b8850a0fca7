package snippet

import "strings"

// traits are properties of a word that the scanner uses.
type traits uint16

const (
	continues  traits = 1 << iota // does not start a statement after a line's end or a }
	nests                         // is followed by an operand or a statement
	contextual                    // may also be a name
	caseClause                    // starts a clause of switch
)

// keywords are the keywords of JavaScript and TypeScript, with their traits.
var keywords = traitsOf(map[traits]string{
	continues: "else catch finally while in of instanceof as satisfies is extends implements from",
	nests: "typeof void delete new await yield throw return if else for while do with class extends function keyof " +
		"readonly infer unique async declare abstract in instanceof case default export import enum try finally catch switch",
	contextual: "await yield keyof readonly infer unique async declare abstract of as is satisfies let static get set type " +
		"asserts accessor using from namespace module interface implements public private protected override out global",
	caseClause: "case default",
})

// mayBeKeyword excludes most words without a map access, which takes longer than the rest of
// the work for a word.
func mayBeKeyword(text string) bool {
	return len(text) <= len("implements") && text[0] >= 'a' && text[0] <= 'z'
}

func traitsOf(lists map[traits]string) map[string]traits {
	all := make(map[string]traits)
	for is, list := range lists {
		for text := range strings.FieldsSeq(list) {
			all[text] |= is
		}
	}
	return all
}
