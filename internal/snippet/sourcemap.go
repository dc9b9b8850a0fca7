package snippet

import (
	"encoding/json"
	"sort"
	"strings"
)

// mapped is the stage of a translation by esbuild.
type mapped struct {
	from, to string        // the text before and after
	sources  func() []byte // returns the source map, as JSON
}

func (m mapped) original(offset int) (int, bool) {
	var file struct {
		Sources  []string `json:"sources"`
		Mappings string   `json:"mappings"`
	}
	err := json.Unmarshal(m.sources(), &file)
	if err != nil || len(file.Sources) != 1 || file.Sources[0] != moduleName && file.Sources[0] != scriptName {
		return 0, false // a comment in the code named another source
	}
	line, column := positionOf(m.to, offset)
	p, known := find(decode(file.Mappings), line-1, column-1)
	before := offsetOf(m.from, p.line+1, p.column+1)
	return max(before, 0), known && before >= 0
}

// A mapping maps a place of the output to its source. All numbers count from 0.
type mapping struct {
	atLine, atColumn int
	line, column     int
}

// find returns the last mapping up to a place; it is known if it is on the same line.
func find(list []mapping, line, column int) (m mapping, known bool) {
	i := sort.Search(len(list), func(i int) bool {
		return list[i].atLine > line || list[i].atLine == line && list[i].atColumn > column
	})
	if i == 0 {
		return mapping{}, false
	}
	return list[i-1], list[i-1].atLine == line
}

// decode decodes the mappings of a source map: semicolons separate lines, commas separate
// mappings, and each number is relative to the previous mapping. The second number is the
// index of the source, of which there is only one.
func decode(mappings string) []mapping {
	var list []mapping
	var last mapping
	for i, line := range strings.Split(mappings, ";") {
		last.atLine, last.atColumn = i, 0
		for text := range strings.SplitSeq(line, ",") {
			n := decodeNumbers(text)
			if len(n) < 4 {
				continue
			}
			last.atColumn += n[0]
			last.line += n[2]
			last.column += n[3]
			list = append(list, last)
		}
	}
	return list
}

const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// encodeNumber encodes one non-negative number for decodeNumbers.
func encodeNumber(n int) string {
	var text []byte
	for n <<= 1; ; n >>= 5 {
		if n < 32 {
			return string(append(text, base64[n]))
		}
		text = append(text, base64[n&31|32])
	}
}

// decodeNumbers decodes variable-length numbers: five bits per digit, the lowest first;
// the sixth bit says that more follow. The lowest bit of the number is its sign.
func decodeNumbers(text string) []int {
	var list []int
	value, shift := 0, 0
	for i := range len(text) {
		digit := strings.IndexByte(base64, text[i])
		value |= digit & 31 << shift
		if shift += 5; digit&32 != 0 {
			continue
		}
		n := value >> 1
		if value&1 != 0 {
			n = -n
		}
		list = append(list, n)
		value, shift = 0, 0
	}
	return list
}
