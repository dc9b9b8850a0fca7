package strictjson

import "fmt"

// Count returns how many values of a text are outside of opaque members, and become a tree. It does not check the text.
// The error means that there are more values than a request may have.
func Count(text []byte) (kept int, err error) { return count(text, maxValues, maxTree) }

func count(text []byte, maxValues, maxKept int) (kept int, err error) {
	var (
		values, depth int    // of open objects and arrays
		inside        int    // depth of the opaque member that is open; 0: none is
		name          []byte // the last string
		isOpaque      bool   // the next value belongs to an opaque member
		inScalar      bool
		members       [3]int // of the open object or array at a depth, with names
	)
	for i := 0; i < len(text); i++ {
		first := text[i]
		switch first {
		case ',', ' ', '\n', '\r', '\t':
			inScalar = false
			continue
		case ':':
			isOpaque = inside == 0 && opaque[string(name)]
			continue
		case '}', ']':
			if depth == inside {
				inside = 0
			}
			depth, inScalar = max(0, depth-1), false
			continue
		case '{', '[':
			if depth++; isOpaque {
				inside = depth
			}
			if depth < len(members) {
				members[depth] = 0
			}
		case '"':
			begin := i + 1
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			name = text[begin:min(i, len(text))]
		default:
			if inScalar {
				continue
			}
			inScalar = true
		}
		isOpaque = false
		values++
		in := depth // of the object or array that has the value
		if first == '{' || first == '[' {
			in--
		}
		if in < len(members) {
			members[in]++
		}
		if inside == 0 {
			kept++
		}
		switch {
		case values > maxValues:
			return kept, fmt.Errorf("more than %d values", maxValues)
		case kept > maxKept:
			return kept, fmt.Errorf("more than %d values outside of globals", maxKept)
		case inside == 0 && in < len(members) && members[in] > 2*maxMembers:
			return kept, fmt.Errorf("an object or array with more than %d members", maxMembers)
		case depth > maxDepth:
			return kept, fmt.Errorf("more than %d levels of objects and arrays", maxDepth)
		}
	}
	return kept, nil
}
