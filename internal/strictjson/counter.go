package strictjson

import "fmt"

// ValuesError is the error of a text with more values than a request may have.
type ValuesError struct {
	Most int
	Kept bool // only values outside of opaque members count
}

// Error names the bound.
func (e *ValuesError) Error() string {
	if e.Kept {
		return fmt.Sprintf("more than %d values outside of globals", e.Most)
	}
	return fmt.Sprintf("more than %d values", e.Most)
}

// Counter counts the values of a text as it arrives, as the parser does: it does not check the text.
type Counter struct {
	// Kept are the values outside of opaque members, which become a tree. Values are all.
	Kept, Values int

	inString, escaped, inScalar bool

	last   []byte // the beginning of the last string, for names
	opaque bool   // the next value belongs to an opaque member
	depth  int    // of open objects and arrays in it
}

// longestOpaque bounds the names that are compared with opaque.
const longestOpaque = 16

// Add counts the values that begin in a piece of the text. It returns a [*ValuesError] if the parser
// would refuse their number.
func (c *Counter) Add(piece []byte) error {
	for _, b := range piece {
		switch {
		case c.inString:
			c.inside(b)
		case b == '"':
			c.inString, c.opaque, c.last = true, false, c.last[:0]
			c.begin()
		case b == '{' || b == '[':
			c.begin()
			if c.opaque || c.depth > 0 {
				c.depth, c.opaque = c.depth+1, false
			}
		case b == '}' || b == ']':
			c.depth, c.inScalar = max(0, c.depth-1), false
		case b == ':':
			c.opaque = c.depth == 0 && opaque[string(c.last)]
		case b == ',' || b == ' ' || b == '\n' || b == '\r' || b == '\t':
			c.inScalar = false
		case !c.inScalar:
			c.inScalar, c.opaque = true, false
			c.begin()
		}
		if c.Values > maxValues {
			return &ValuesError{Most: maxValues}
		}
		if c.Kept > maxTree {
			return &ValuesError{maxTree, true}
		}
	}
	return nil
}

// inside reads a byte of a string.
func (c *Counter) inside(b byte) {
	switch {
	case c.escaped:
		c.escaped = false
	case b == '\\':
		c.escaped = true
	case b == '"':
		c.inString = false
	}
	if c.inString && len(c.last) < longestOpaque {
		c.last = append(c.last, b)
	}
}

// begin counts a value.
func (c *Counter) begin() {
	c.Values++
	if !c.opaque && c.depth == 0 {
		c.Kept++
	}
}
