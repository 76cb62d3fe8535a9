// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// BenchmarkAsk is a whole refresh of 5,000 nodes and 5 resources, the test's server, TCP and HTTP included.
func BenchmarkAsk(b *testing.B) {
	const nodes = 5000
	var queries []Query
	answers := map[string][]byte{}
	size := 0
	for slot, name := range []string{"cpu", "memory", "network", "diskIO", "gpu"} {
		query, _ := BuiltIn(name, "instance", 5*time.Minute)
		query.Label, query.Deviation = "instance", ""
		queries = append(queries, query)
		var rows []string
		for i := 0; i < nodes; i++ {
			instance := fmt.Sprintf("10.%d.%d.%d:9100", i/65536, i/256%256, i%256)
			rows = append(rows, series(instance, term(slot, Value), fmt.Sprintf("%.16f", float64(i*7919%10007)/10007)),
				series(instance, term(slot, Timestamp), fmt.Sprintf("%d.%d", 1699999970+i%30, i%1000)))
		}
		answers[query.union(slot)] = []byte(vector(rows...))
		size += len(answers[query.union(slot)])
	}
	s := serve(b, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(answers[r.Form.Get("query")]) })
	c := client(b, prometheus(s.URL))
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		result, err := c.Ask(context.Background(), queries)
		if err != nil || len(result.Rows) != 10*nodes {
			b.Fatalf("%d rows, %v", len(result.Rows), err)
		}
	}
}
