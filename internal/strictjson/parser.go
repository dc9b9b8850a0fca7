package strictjson

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// parser reads one value within the bounds.
type parser struct {
	d         *jsontext.Decoder
	maxValues int
	tree      bool // the value becomes a tree
	keep      bool // the next value is outside of opaque members, and counts for maxTree

	values, kept int
}

// parse returns the value, nil if it is not kept.
func (p *parser) parse() (any, error) {
	v, err := p.value()
	if err != nil {
		return nil, errorOf(err)
	}
	if _, err := p.d.ReadToken(); err != io.EOF {
		return nil, errors.New("text after the value")
	}
	return v, nil
}

// next reads a token, and counts it.
func (p *parser) next() (jsontext.Token, error) {
	token, err := p.d.ReadToken()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return token, err
	}
	depth := p.d.StackDepth()
	kind := token.Kind()
	if kind == '}' || kind == ']' {
		return token, nil
	}
	if p.keep {
		p.kept++
	}
	switch p.values++; {
	case p.values > p.maxValues:
		return token, &ValuesError{Most: p.maxValues}
	case p.kept > maxTree:
		return token, &ValuesError{maxTree, true}
	case depth > maxDepth:
		return token, fmt.Errorf("nested more than %d levels deep", maxDepth)
	case depth > 0 && depth <= 2 && kind != '{' && kind != '[':
		if _, members := p.d.StackIndex(depth); members > 2*maxMembers { // of an object, names count
			return token, fmt.Errorf("%s: more than %d members", p.d.StackPointer(), maxMembers)
		}
	}
	return token, nil
}

func (p *parser) value() (any, error) {
	token, err := p.next()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		if p.keep && p.tree {
			return token.String(), nil
		}
	case '0':
		if p.keep && p.tree {
			text := token.String()
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("the number %.40s is out of range", text)
			}
			return n, nil
		}
	case 't', 'f':
		return token.Bool(), nil
	}
	return nil, nil
}

func (p *parser) object() (any, error) {
	var members map[string]any
	if p.keep && p.tree {
		members = map[string]any{}
	}
	for p.d.PeekKind() != '}' {
		token, err := p.next()
		if err != nil {
			return nil, err
		}
		if !p.keep {
			if _, err := p.value(); err != nil {
				return nil, err
			}
			continue
		}
		name, read := token.String(), p.value
		if opaque[name] {
			read = p.skip
		}
		v, err := read()
		if err != nil {
			return nil, err
		}
		if p.tree {
			members[name] = v
		}
	}
	_, err := p.next()
	return members, err
}

// skip reads a value. An object or array becomes an empty one.
func (p *parser) skip() (empty any, err error) {
	switch p.d.PeekKind() {
	case '{':
		empty = map[string]any{}
	case '[':
		empty = []any{}
	default:
		return p.value()
	}
	p.keep = false
	_, err = p.value()
	p.keep = true
	return empty, err
}

func (p *parser) array() (any, error) {
	list := []any{}
	for p.d.PeekKind() != ']' {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		if p.keep && p.tree {
			list = append(list, v)
		}
	}
	_, err := p.next()
	return list, err
}
