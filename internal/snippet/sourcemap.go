package snippet

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
)

// A SourceMap is a parsed source map.
type SourceMap struct {
	sources  []string
	mappings []mapping
}

// A SourcePosition is a position in a source.
type SourcePosition struct {
	Source       string
	Line, Column int
}

// A mapping maps a position of the generated code to its source.
type mapping struct {
	atLine, atColumn     int
	source, line, column int
}

// ParseSourceMap parses a source map of version 3. Maps with sections are not supported.
// Beside an error, it returns an empty map.
func ParseSourceMap(data []byte) (*SourceMap, error) {
	var file struct {
		Version  int      `json:"version"`
		Sources  []string `json:"sources"`
		Mappings string   `json:"mappings"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return new(SourceMap), fmt.Errorf("source map: %w", err)
	}
	if file.Version != 3 {
		return new(SourceMap), fmt.Errorf("source map: version %d", file.Version)
	}
	mappings, err := decodeMappings(file.Mappings, len(file.Sources))
	if err != nil {
		return new(SourceMap), fmt.Errorf("source map: %w", err)
	}
	return &SourceMap{file.Sources, mappings}, nil
}

// Original returns the source position of the last mapping at or before a position. known reports
// whether the mapping is on the same line.
func (m *SourceMap) Original(line, column int) (p SourcePosition, known bool) {
	i := sort.Search(len(m.mappings), func(i int) bool {
		at := m.mappings[i]
		return at.atLine > line || at.atLine == line && at.atColumn > column
	})
	if i == 0 {
		return SourcePosition{}, false
	}
	at := m.mappings[i-1]
	return SourcePosition{m.sources[at.source], at.line, at.column}, at.atLine == line
}

var errMappings = errors.New("invalid mappings")

// decodeMappings decodes mappings: semicolons separate lines, commas separate mappings, and each
// number is relative to the previous mapping. Mappings of one number are skipped: they lack a source.
func decodeMappings(mappings string, sources int) ([]mapping, error) {
	list := make([]mapping, 0, strings.Count(mappings, ",")+1)
	var last mapping
	for i, line := range strings.Split(mappings, ";") {
		last.atLine, last.atColumn = i, 0
		for text := range strings.SplitSeq(line, ",") {
			n, count, err := decodeNumbers(text)
			switch {
			case err != nil:
				return nil, err
			case count == 0 && line == "":
				continue
			case count != 1 && count != 4 && count != 5:
				return nil, errMappings
			}
			last.atColumn += n[0]
			last.source += n[1]
			last.line += n[2]
			last.column += n[3]
			if count == 1 {
				continue
			}
			if last.atColumn < 0 || last.source < 0 || last.source >= sources || last.line < 0 || last.column < 0 {
				return nil, errMappings
			}
			list = append(list, last)
		}
	}
	return list, nil
}

const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// EncodeNumber encodes one non-negative number as in mappings.
func EncodeNumber(n int) string {
	var text []byte
	for n <<= 1; ; n >>= 5 {
		if n < 32 {
			return string(append(text, base64[n]))
		}
		text = append(text, base64[n&31|32])
	}
}

// decodeNumbers decodes up to five variable-length numbers: five bits per digit, the lowest
// first; the sixth bit is set if more digits follow. The lowest bit of the number is its sign.
func decodeNumbers(text string) (list [5]int, count int, err error) {
	value, shift := 0, 0
	for i := range len(text) {
		digit := strings.IndexByte(base64, text[i])
		if digit < 0 || shift > 30 || count == len(list) {
			return list, 0, errMappings
		}
		value |= digit & 31 << shift
		if shift += 5; digit&32 != 0 {
			continue
		}
		list[count] = value >> 1
		if value&1 != 0 {
			list[count] = -list[count]
		}
		count++
		value, shift = 0, 0
	}
	if shift > 0 {
		return list, 0, errMappings
	}
	return list, count, nil
}
