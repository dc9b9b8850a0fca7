package snippet

import "gaol/internal/sourcemap"

// mapped is the stage of a translation by esbuild.
type mapped struct {
	from, to string        // the text before and after
	sources  func() []byte // returns the source map, as JSON
}

func (m mapped) original(offset int) (int, bool) {
	file, err := sourcemap.Parse(m.sources())
	if err != nil {
		return 0, false
	}
	line, column := positionOf(m.to, min(offset, len(m.to)))
	p, known := file.Original(line-1, column-1)
	if p.Source != "" && p.Source != moduleName && p.Source != scriptName {
		return 0, false // a comment in the code named another source
	}
	before := offsetOf(m.from, p.Line+1, p.Column+1)
	return max(before, 0), known && before >= 0
}
