package audit

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits of a record. A path has at most 4096 bytes, which are 8192 in hex.
const (
	maxRecord = 16 << 10
	maxFields = 32
)

// record has the fields of a record, with decoded text:
// "audit(SECONDS.MILLIS:SERIAL): key=value ...".
type record map[string]string

// text are the keys whose values the kernel quotes, or writes in hex if they contain a
// quote, a blank or a non-ASCII character. Only these can contain text that a guest chose.
// So a blank always ends a value, and a guest can't forge a key.
var text = map[string]bool{"path": true, "name": true, "dev": true, "exe": true, "comm": true, "ocomm": true}

// parseRecord parses a record of Landlock. All have the number of a domain.
func parseRecord(line string) (r record, domain uint64, err error) {
	if len(line) > maxRecord {
		return nil, 0, fmt.Errorf("%d bytes, at most %d are allowed", len(line), maxRecord)
	}
	stamp, rest, found := strings.Cut(line, ": ")
	if !found || !strings.HasPrefix(stamp, "audit(") || !strings.HasSuffix(stamp, ")") {
		return nil, 0, errors.New("no stamp")
	}
	words := strings.Split(rest, " ")
	if len(words) > maxFields {
		return nil, 0, fmt.Errorf("%d fields, at most %d are allowed", len(words), maxFields)
	}
	r = make(record, len(words))
	for _, word := range words {
		if err := r.add(word); err != nil {
			return nil, 0, err
		}
	}
	domain, err = r.number("domain", 16, 64)
	return r, domain, err
}

// add adds a field. It rejects duplicates, as one of them might be forged.
func (r record) add(word string) error {
	key, value, found := strings.Cut(word, "=")
	if !found || key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return fmt.Errorf("field %q", word)
	}
	if _, twice := r[key]; twice {
		return fmt.Errorf("duplicate field %s", key)
	}
	var err error
	if text[key] {
		value, err = parseText(value)
	} else if !isPlain(value) {
		err = fmt.Errorf("value %q", value)
	}
	if err != nil {
		return fmt.Errorf("field %s: %w", key, err)
	}
	r[key] = value
	return nil
}

func parseText(value string) (string, error) {
	if inner, quoted := strings.CutPrefix(value, `"`); quoted {
		inner, closed := strings.CutSuffix(inner, `"`)
		if !closed || !isPlain(inner) {
			return "", fmt.Errorf("text %q", value)
		}
		return inner, nil
	}
	decoded, err := hex.DecodeString(value)
	if err != nil {
		return "", fmt.Errorf("hex: %w", err)
	}
	return string(decoded), nil
}

// isPlain reports whether the kernel writes s without hex.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || c == '"' {
			return false
		}
	}
	return true
}

// number parses a mandatory field.
func (r record) number(key string, base, bits int) (uint64, error) {
	value, found := r[key]
	if !found {
		return 0, fmt.Errorf("no field %s", key)
	}
	n, err := strconv.ParseUint(value, base, bits)
	if err != nil {
		return 0, fmt.Errorf("field %s: %w", key, err)
	}
	return n, nil
}
