package strictjson

import "fmt"

// BoundsError is the error of a text that exceeds the bounds of requests.
type BoundsError struct{ Bound string }

// Error names the bound.
func (e *BoundsError) Error() string { return "more than " + e.Bound }

// Counter counts the values of a text as it arrives. It does not check the text.
type Counter struct {
	// Kept are the values outside of opaque members, which become a tree. Values are all.
	Kept, Values int

	inString, escaped, inScalar bool

	last   []byte // the beginning of the last string, for names
	opaque bool   // the next value belongs to an opaque member
	depth  int    // of open objects and arrays
	inside int    // depth of the opaque member that is open; 0: none is
}

// longestOpaque bounds the names that are compared with opaque.
const longestOpaque = 16

// Add counts the values that begin in a piece of the text. It returns a [*BoundsError] if there are more than a request
// may have.
func (c *Counter) Add(piece []byte) error { return c.add(piece, maxValues, maxTree) }

func (c *Counter) add(piece []byte, maxValues, maxKept int) error {
	for _, b := range piece {
		switch {
		case c.inString:
			c.readString(b)
		case b == '"':
			c.inString, c.opaque, c.last = true, false, c.last[:0]
			c.begin()
		case b == '{' || b == '[':
			c.begin()
			if c.depth++; c.opaque {
				c.inside, c.opaque = c.depth, false
			}
		case b == '}' || b == ']':
			if c.depth == c.inside {
				c.inside = 0
			}
			c.depth, c.inScalar = max(0, c.depth-1), false
		case b == ':':
			c.opaque = c.inside == 0 && opaque[string(c.last)]
		case b == ',' || b == ' ' || b == '\n' || b == '\r' || b == '\t':
			c.inScalar = false
		case !c.inScalar:
			c.inScalar, c.opaque = true, false
			c.begin()
		}
		switch {
		case c.Values > maxValues:
			return &BoundsError{fmt.Sprintf("%d values", maxValues)}
		case c.Kept > maxKept:
			return &BoundsError{fmt.Sprintf("%d values outside of globals", maxKept)}
		case c.depth > maxDepth:
			return &BoundsError{fmt.Sprintf("%d levels of objects and arrays", maxDepth)}
		}
	}
	return nil
}

// readString reads a byte of a string.
func (c *Counter) readString(b byte) {
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
	if !c.opaque && c.inside == 0 {
		c.Kept++
	}
}
