package bench

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// Curve is a distribution of times in milliseconds.
type Curve struct {
	Name  string
	Times Series
}

func (m *measurer) curve(name string, side Side, s Samples) {
	m.report.Curves = append(m.report.Curves, Curve{name, *s.of(side)})
}

// Sizes in SVG units. The legend is below the plot.
const (
	pictureWidth          = 860
	plotLeft, plotRight   = 60, 830
	plotTop, plotBottom   = 70, 400
	legendTop, legendLine = 470, 22
)

// Most color-blind people can distinguish these colors (Okabe and Ito), and they contrast
// with white as well as with black.
var colors = []string{"#808080", "#0072b2", "#009e73", "#d55e00", "#cc79a7", "#b8860b", "#56b4e9"}

const pictureStyle = `<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px }
.back { fill: #ffffff }
.grid { stroke: #d0d7de; stroke-width: 1 }
.curve { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .back { fill: #0d1117 }
  .grid { stroke: #30363d }
}
</style>
`

// picture is an SVG document that is being drawn.
type picture struct {
	text        strings.Builder
	least, most float64 // milliseconds at the ends of the axis
}

// WritePicture draws the curves as SVG: the share of samples (upwards) that took no longer
// than a time (to the right, logarithmic). The unit of the axis at the top is the median of
// the first curve.
func (r *Report) WritePicture(w io.Writer) error {
	curves := slices.DeleteFunc(slices.Clone(r.Curves), func(c Curve) bool { return len(c.Times) == 0 })
	if len(curves) == 0 {
		return fmt.Errorf("no samples to draw")
	}
	p := &picture{least: math.Inf(1)}
	for _, c := range curves {
		p.least = min(p.least, slices.Min(c.Times))
		p.most = max(p.most, slices.Max(c.Times))
	}
	p.least, p.most = max(p.least/1.1, 1e-3), max(p.most*1.1, 2e-3)
	height := legendTop + legendLine*len(curves) + 16
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`+"\n", pictureWidth, height)
	p.printf("<title>gaol bench: latency distributions</title>\n%s", pictureStyle)
	p.printf(`<rect class="back" width="%d" height="%d"/>`+"\n", pictureWidth, height)
	p.label(plotLeft, 24, "start", "title", "How long a small program takes: share of samples done after a time")
	p.percentileLines()
	p.axis(plotBottom, 18, 1, " ms")
	p.axis(plotTop, -8, curves[0].Times.Percentile(50), "×")
	p.label(plotLeft, plotBottom+40, "start", "", "below: milliseconds; above: multiples of the median of "+curves[0].Name+"; both axes logarithmic")
	for i, c := range curves {
		p.curve(c, colors[i%len(colors)])
		p.legend(c, legendTop+i*legendLine, colors[i%len(colors)])
	}
	p.printf("</svg>\n")
	_, err := io.WriteString(w, p.text.String())
	return err
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

func (p *picture) x(ms float64) float64 {
	ms = max(ms, p.least) // a coarse clock may measure 0
	share := (math.Log(ms) - math.Log(p.least)) / (math.Log(p.most) - math.Log(p.least))
	return plotLeft + share*(plotRight-plotLeft)
}

func (p *picture) y(share float64) float64 { return plotBottom - share*(plotBottom-plotTop) }

func (p *picture) label(x, y float64, anchor, class, text string) {
	p.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`+"\n", x, y, anchor, class, html.EscapeString(text))
}

// percentileLines draws the lines of the percentiles.
func (p *picture) percentileLines() {
	for _, percent := range []int{0, 25, 50, 75, 95, 99} {
		y := p.y(float64(percent) / 100)
		p.printf(`<path class="grid" d="M%d %.1fH%d"/>`+"\n", plotLeft, y, plotRight)
		name := fmt.Sprintf("p%d", percent)
		if percent == 99 {
			y -= 6 // or it would cover p95's
		}
		p.label(plotLeft-8, y+5, "end", "", name)
	}
}

// axis labels 1, 2 and 5 times powers of ten. The unit is in milliseconds.
func (p *picture) axis(y, below int, unit float64, name string) {
	for power := math.Pow(10, math.Floor(math.Log10(p.least/unit))); power*unit <= p.most; power *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if ms := step * power * unit; ms >= p.least && ms <= p.most {
				p.printf(`<path class="grid" d="M%.1f %dV%d"/>`+"\n", p.x(ms), y-4, y+4)
				p.label(p.x(ms), float64(y+below), "middle", "", fmt.Sprintf("%.4g%s", step*power, name))
			}
		}
	}
}

// curve draws one distribution as steps, with dots at p50, p95 and p99.
func (p *picture) curve(c Curve, color string) {
	var path strings.Builder
	for i, ms := range slices.Sorted(slices.Values(c.Times)) {
		x := p.x(ms)
		if i == 0 {
			fmt.Fprintf(&path, "M%.1f %d", x, plotBottom)
		}
		fmt.Fprintf(&path, "H%.1fV%.1f", x, p.y(float64(i+1)/float64(len(c.Times))))
	}
	p.printf(`<path class="curve" stroke="%s" d="%s"/>`+"\n", color, path.String())
	for _, percent := range []int{50, 95, 99} {
		p.printf(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n",
			p.x(c.Times.Percentile(percent)), p.y(float64(percent)/100), color)
	}
}

func (p *picture) legend(c Curve, y int, color string) {
	p.printf(`<rect x="%d" y="%d" width="14" height="4" fill="%s"/>`+"\n", plotLeft, y-6, color)
	p.label(plotLeft+22, float64(y), "start", "", fmt.Sprintf("%s: p50 %.1f ms, p95 %.1f ms, p99 %.1f ms", c.Name,
		c.Times.Percentile(50), c.Times.Percentile(95), c.Times.Percentile(99)))
}
