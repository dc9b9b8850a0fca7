package hostcall

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gaol/internal/strictjson"
)

// Integers is what becomes of integers that a JavaScript number cannot hold.
type Integers int

const (
	RefuseIntegers Integers = iota // an error names their path
	BigInts                        // BigInts
	AnyIntegers                    // numbers of JSON, for another process that decides
)

// NewIntegers returns BigInts, or RefuseIntegers.
func NewIntegers(bigInts bool) Integers {
	if bigInts {
		return BigInts
	}
	return RefuseIntegers
}

// exactDigits is how many digits an integer can have that a JavaScript number always holds.
const exactDigits = 15

// convert applies i to the integers of a text of JSON.
func (i Integers) convert(name string, text []byte) ([]byte, error) {
	if i == AnyIntegers || !hasDigits(text, exactDigits+1) {
		return text, nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var converted []byte
	copied := 0
	for {
		token, err := d.ReadToken()
		if err == io.EOF {
			return append(converted, text[copied:]...), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if token.Kind() != '0' {
			continue
		}
		digits := token.String()
		switch {
		case isExact(digits):
			continue
		case i == RefuseIntegers:
			return nil, &Error{Code: CodeResult, Message: fmt.Sprintf("%s: a JavaScript number cannot hold the integer %.40s: make it a string, or allow BigInts", strictjson.Join(name, strictjson.Path(d)), digits)}
		}
		end := int(d.InputOffset())
		converted = append(converted, text[copied:end-len(digits)]...)
		converted = append(converted, `{"\u0000bigint":"`+digits+`"}`...)
		copied = end
	}
}

func hasDigits(text []byte, n int) bool {
	run := 0
	for _, c := range text {
		run++
		if c < '0' || c > '9' {
			run = 0
		}
		if run == n {
			return true
		}
	}
	return false
}

// isExact reports whether JavaScript prints a number of JSON as it is, or it is no integer.
func isExact(digits string) bool {
	if len(digits) <= exactDigits || strings.ContainsAny(digits, ".eE") {
		return true
	}
	n, err := strconv.ParseFloat(digits, 64)
	return err == nil && strconv.FormatFloat(n, 'f', -1, 64) == digits
}
