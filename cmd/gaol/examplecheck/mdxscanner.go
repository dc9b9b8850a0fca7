package examplecheck

// mdxScanner finds the end of code in an MDX page. It knows brackets, strings and comments, and
// no more of JavaScript.
type mdxScanner struct {
	module bool // import or export, which also ends at a blank line
	tag    bool // a tag, which ends at its >

	depth   int  // of open brackets
	quote   byte // of the open string: ', " or `; or 0
	comment bool // in /* */
	done    bool // the tag, or the expression, has ended
}

// closed reports whether the code may end here.
func (s *mdxScanner) closed() bool {
	if s.module {
		return s.depth <= 0 && s.quote == 0 && !s.comment
	}
	return s.done
}

// scan continues with a line.
func (s *mdxScanner) scan(line []byte) {
	for i := 0; i < len(line) && !s.done; i++ {
		var next byte
		if i+1 < len(line) {
			next = line[i+1]
		}
		switch b := line[i]; {
		case s.comment:
			if s.comment = b != '*' || next != '/'; !s.comment {
				i++
			}
		case s.quote != 0:
			i += s.inString(b)
		case b == '/' && next == '*' && s.isCode():
			s.comment = true
			i++
		case b == '/' && next == '/' && s.isCode():
			i = len(line)
		default:
			s.inCode(b)
		}
	}
	if s.isCode() && s.quote != '`' { // only strings of JSX and templates continue in the next line
		s.quote = 0
	}
}

// isCode reports whether the scanner is in JavaScript, and not among the attributes of a tag.
func (s *mdxScanner) isCode() bool { return s.module || s.depth > 0 }

// inString continues in a string, and returns how many further bytes to skip.
func (s *mdxScanner) inString(b byte) int {
	switch {
	case b == s.quote:
		s.quote = 0
	case b == '\\' && s.isCode():
		return 1
	}
	return 0
}

func (s *mdxScanner) inCode(b byte) {
	switch b {
	case '\'', '"':
		s.quote = b
	case '`':
		if s.isCode() {
			s.quote = b
		}
	case '{', '(', '[':
		s.depth++
	case '}', ')', ']':
		s.depth--
		s.done = s.depth <= 0 && !s.tag && !s.module
	case '>':
		s.done = s.tag && s.depth <= 0
	}
}
