// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// prometheus answers NodeLoad's queries like Prometheus, with the same load for each resource.
type prometheus struct {
	url string

	mutex sync.Mutex
	loads map[string]float64
	// pods are the uses of pods of the default namespace, which the query podUse returns.
	pods map[string]float64
	at   time.Time
}

// term matches NodeLoad's names for the expressions in a query: a
// number, and v, t or d for value, timestamp and deviation.
var term = regexp.MustCompile(`"nodeload_term", "([0-9]+)([vtd])"`)

// podUse is the query for the use of pods.
const podUse = "pod_use"

// newPrometheus serves the loads of nodes, measured at the given time, or at the time of the request if that is zero.
func newPrometheus(tb testing.TB, loads map[string]float64, at time.Time) *prometheus {
	p := &prometheus{loads: loads, at: at}
	server := httptest.NewServer(p)
	tb.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// set changes a node's load, and the time of all measurements.
func (p *prometheus) set(node string, load float64, at time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.loads[node], p.at = load, at
}

func (p *prometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := time.Now()
	at := p.at
	if at.IsZero() {
		at = now
	}
	out := bufio.NewWriter(w)
	defer out.Flush()
	fmt.Fprint(out, `{"status":"success","data":{"resultType":"vector","result":[`)
	comma := ""
	query, values, labels := r.FormValue("query"), p.loads, `"instance":%q`
	if strings.Contains(query, podUse) {
		values, labels = p.pods, `"namespace":"default","pod":%q`
	}
	for _, found := range term.FindAllStringSubmatch(query, -1) {
		for name, value := range values {
			if found[2] == "t" {
				value = seconds(at)
			}
			fmt.Fprintf(out, `%s{"metric":{`+labels+`,"nodeload_term":%q},"value":[%.3f,"%f"]}`,
				comma, name, found[1]+found[2], seconds(now), value)
			comma = ","
		}
	}
	fmt.Fprint(out, `]}}`)
}

func seconds(at time.Time) float64 { return float64(at.UnixNano()) / 1e9 }
