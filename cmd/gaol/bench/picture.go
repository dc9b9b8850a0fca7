package bench

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Curve is the distribution of one thing's times.
type Curve struct {
	Name  string
	Times Times
}

func (m *measurer) curve(name string, side Side, s Samples) {
	m.report.Curves = append(m.report.Curves, Curve{name, *s.of(side)})
}

// The picture's measures, in SVG's units. The plot lies between the margins; the
// legend is below it.
const (
	pictureWidth          = 860
	plotLeft, plotRight   = 60, 830
	plotTop, plotBottom   = 70, 400
	legendTop, legendLine = 470, 22
)

// The colours are told apart by most who are colour-blind (Okabe and Ito), and
// stand out from white as well as from black.
var colours = []string{"#808080", "#0072b2", "#009e73", "#d55e00", "#cc79a7", "#b8860b", "#56b4e9"}

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

// picture draws into text.
type picture struct {
	text        strings.Builder
	least, most float64 // milliseconds, at the ends of the axis
}

// WritePicture draws the curves as SVG: for each, the share of samples (upwards)
// that took no longer than a time (to the right, on a logarithmic scale). The first
// one's median is the 1 of the axis at the top.
func (r *Report) WritePicture(w io.Writer) error {
	curves := slices.DeleteFunc(slices.Clone(r.Curves), func(c Curve) bool { return len(c.Times) == 0 })
	if len(curves) == 0 {
		return fmt.Errorf("no samples to draw")
	}
	p := &picture{least: math.Inf(1)}
	for _, c := range curves {
		p.least = min(p.least, milliseconds(slices.Min(c.Times)))
		p.most = max(p.most, milliseconds(slices.Max(c.Times)))
	}
	p.least, p.most = max(p.least/1.1, 1e-3), max(p.most*1.1, 2e-3)
	height := legendTop + legendLine*len(curves) + 16
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`+"\n", pictureWidth, height)
	p.printf("<title>gaol bench: latency distributions</title>\n%s", pictureStyle)
	p.printf(`<rect class="back" width="%d" height="%d"/>`+"\n", pictureWidth, height)
	p.label(plotLeft, 24, "start", "title", "How long a small program takes: share of samples done after a time")
	p.shares()
	p.axis(plotBottom, 18, 1, " ms")
	p.axis(plotTop, -8, milliseconds(curves[0].Times.Percentile(50)), "×")
	p.label(plotLeft, plotBottom+40, "start", "", "below: milliseconds; above: multiples of the median of "+curves[0].Name+"; both axes logarithmic")
	for i, c := range curves {
		p.curve(c, colours[i%len(colours)])
		p.legend(c, legendTop+i*legendLine, colours[i%len(colours)])
	}
	p.printf("</svg>\n")
	_, err := io.WriteString(w, p.text.String())
	return err
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

func (p *picture) x(ms float64) float64 {
	ms = max(ms, p.least) // a clock may be too coarse to tell a time from none
	share := (math.Log(ms) - math.Log(p.least)) / (math.Log(p.most) - math.Log(p.least))
	return plotLeft + share*(plotRight-plotLeft)
}

func (p *picture) y(share float64) float64 { return plotBottom - share*(plotBottom-plotTop) }

func (p *picture) label(x, y float64, anchor, class, text string) {
	p.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`+"\n", x, y, anchor, class, html.EscapeString(text))
}

// shares draws the lines of the percentiles.
func (p *picture) shares() {
	for _, percent := range []int{0, 25, 50, 75, 95, 99} {
		y := p.y(float64(percent) / 100)
		p.printf(`<path class="grid" d="M%d %.1fH%d"/>`+"\n", plotLeft, y, plotRight)
		name := fmt.Sprintf("p%d", percent)
		if percent == 99 {
			y -= 6 // or it would lie on p95's
		}
		p.label(plotLeft-8, y+5, "end", "", name)
	}
}

// axis labels 1, 2 and 5 times powers of ten of a unit that is so many
// milliseconds.
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
func (p *picture) curve(c Curve, colour string) {
	sorted := slices.SortedFunc(slices.Values(c.Times), cmp.Compare[time.Duration])
	var path strings.Builder
	for i, t := range sorted {
		x := p.x(milliseconds(t))
		if i == 0 {
			fmt.Fprintf(&path, "M%.1f %d", x, plotBottom)
		}
		fmt.Fprintf(&path, "H%.1fV%.1f", x, p.y(float64(i+1)/float64(len(sorted))))
	}
	p.printf(`<path class="curve" stroke="%s" d="%s"/>`+"\n", colour, path.String())
	for _, percent := range []int{50, 95, 99} {
		p.printf(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n",
			p.x(milliseconds(c.Times.Percentile(percent))), p.y(float64(percent)/100), colour)
	}
}

func (p *picture) legend(c Curve, y int, colour string) {
	p.printf(`<rect x="%d" y="%d" width="14" height="4" fill="%s"/>`+"\n", plotLeft, y-6, colour)
	p.label(plotLeft+22, float64(y), "start", "", fmt.Sprintf("%s: p50 %.1f ms, p95 %.1f ms, p99 %.1f ms", c.Name,
		milliseconds(c.Times.Percentile(50)), milliseconds(c.Times.Percentile(95)), milliseconds(c.Times.Percentile(99))))
}
