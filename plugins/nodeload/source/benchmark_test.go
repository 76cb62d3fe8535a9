// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// cluster is Prometheus' answer about value and timestamp of five resources of so many nodes, as the built-in queries
// return it.
func cluster(nodes int) (queries []Query, answer []byte) {
	var rows []string
	for slot, name := range []string{"cpu", "memory", "network", "diskIO", "gpu"} {
		query, _ := BuiltIn(name, "instance", 5*time.Minute)
		query.Deviation = ""
		queries = append(queries, query)
		for i := 0; i < nodes; i++ {
			instance := fmt.Sprintf("10.%d.%d.%d:9100", i/65536, i/256%256, i%256)
			rows = append(rows, fmt.Sprintf(`{"metric":{"instance":%q,"nodeload_term":"%dv"},"value":[1700000000.123,"%.16f"]}`,
				instance, slot, float64(i*7919%10007)/10007))
			rows = append(rows, fmt.Sprintf(`{"metric":{"instance":%q,"nodeload_term":"%dt"},"value":[1700000000.123,"%d.%d"]}`,
				instance, slot, 1699999970+i%30, i%1000))
		}
	}
	return queries, []byte(vector(strings.Join(rows, ",")))
}

// BenchmarkAsk is a whole refresh of 5,000 nodes and 5 resources, the test's server, TCP and HTTP included.
func BenchmarkAsk(b *testing.B) {
	queries, answer := cluster(5000)
	s := serve(b, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })
	c := client(b, prometheus(s.URL))
	count := 0
	row := func(int, Kind, []byte, float64) { count++ }
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if _, err := c.Ask(context.Background(), "instance", queries, row); err != nil {
			b.Fatal(err)
		}
	}
	if count != b.N*50000 {
		b.Fatalf("%d rows", count)
	}
}

// BenchmarkDecode is what the scheduler's own processor does of it.
func BenchmarkDecode(b *testing.B) {
	queries, answer := cluster(5000)
	r := rows{most: mostSeries}
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		r.begin("instance", queries)
		if _, err := r.decode(bytes.NewReader(answer)); err != nil || len(r.list) != 50000 {
			b.Fatal(len(r.list), err)
		}
	}
}
