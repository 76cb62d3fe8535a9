// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/component-base/term"
)

// progress shows one line on a terminal: the virtual time, attempts per second, and the runs that have ended.
type progress struct {
	out   io.Writer
	mutex sync.Mutex
	began time.Time
	runs  []line
	width int
}

// newProgress returns a progress that is shown only on a terminal.
func newProgress(out io.Writer, runs int) *progress {
	p := &progress{began: time.Now(), runs: make([]line, runs)}
	if file, ok := out.(*os.File); ok {
		if _, _, err := term.TerminalSize(file); err == nil {
			p.out = out
		}
	}
	return p
}

// set sets the state of a run.
func (p *progress) set(run int, l line) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	attempts := p.runs[run].Attempts
	p.runs[run] = l
	if l.Run != nil {
		p.runs[run].Attempts = attempts
	}
	ended, seconds, sum := 0, 0.0, int64(0)
	for i := range p.runs {
		sum += p.runs[i].Attempts
		if p.runs[i].Run != nil {
			ended++
		} else if p.runs[i].Seconds > seconds {
			seconds = p.runs[i].Seconds
		}
	}
	text := fmt.Sprintf("%d of %d runs, simulated time %s, %.0f attempts per second", ended, len(p.runs),
		time.Duration(seconds)*time.Second, float64(sum)/time.Since(p.began).Seconds())
	if ended > 0 {
		text += fmt.Sprintf(", %s left", (time.Since(p.began) * time.Duration(len(p.runs)-ended) / time.Duration(ended)).Round(time.Second))
	}
	p.show(text)
}

// clear removes the line.
func (p *progress) clear() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.show("")
}

func (p *progress) show(text string) {
	if p.out == nil {
		return
	}
	padding := ""
	if p.width > len(text) {
		padding = strings.Repeat(" ", p.width-len(text))
	}
	p.width = len(text)
	fmt.Fprintf(p.out, "\r%s%s\r", text, padding)
}
