// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// enough is the timeout of clients that are to give up: time for every request that does not hang.
const enough = 5 * time.Second

// overdue is a context whose deadline is over when done is closed.
type overdue struct {
	context.Context
	done chan struct{}
}

func newOverdue() overdue { return overdue{context.Background(), make(chan struct{})} }

func (o overdue) Done() <-chan struct{} { return o.done }

func (o overdue) Err() error {
	select {
	case <-o.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// hangs ends the context when it is asked, and answers nothing.
func (o overdue) hangs(w http.ResponseWriter, r *http.Request) {
	close(o.done)
	hangs(w, r)
}

// of makes queries that have nothing but a value, whose expression is the name.
func of(names ...string) (queries []Query) {
	for _, name := range names {
		queries = append(queries, Query{Name: name, Value: name})
	}
	return queries
}

// asks asks a server, and returns which resources were measured, which failed, and what it was asked, each request by
// the names of the resources.
func asks(t *testing.T, c *Client, s *server, queries []Query) (measured, failed string, requests []string) {
	t.Helper()
	before := len(s.requests())
	all, result, err := ask(c, queries...)
	var has, hasNot []string
	if err == nil {
		for _, row := range all {
			has = append(has, queries[row.Slot].Name)
		}
		for slot := range queries {
			if why := result.Failed[slot]; why != nil {
				hasNot = append(hasNot, queries[slot].Name)
				if text := why.Error(); !strings.Contains(text, "resource "+queries[slot].Name+": ") || !strings.Contains(text, "next: ") {
					t.Errorf("the message does not help: %s", text)
				}
			}
		}
	} else if text := err.Error(); !strings.Contains(text, "next: ") || len(all) > 0 {
		t.Errorf("the message does not help, or there are rows with it, %v: %s", all, text)
	}
	for _, saw := range s.requests()[before:] {
		var names []string
		for _, query := range queries {
			if strings.Contains(saw.query, "("+query.Value+"\n") {
				names = append(names, query.Name)
			}
		}
		requests = append(requests, strings.Join(names, "+"))
	}
	return strings.Join(has, " "), strings.Join(hasNot, " "), requests
}

// refresh is what is expected of a refresh.
type refresh struct {
	measured, failed string
	requests         []string
}

func expectRefreshes(t *testing.T, c *Client, s *server, queries []Query, want ...refresh) {
	t.Helper()
	for i, want := range want {
		measured, failed, requests := asks(t, c, s, queries)
		if measured != want.measured || failed != want.failed || cmp.Diff(want.requests, requests) != "" {
			t.Fatalf("refresh %d measured %q, failed %q and asked for %q, want %+v", i+1, measured, failed, requests, want)
		}
	}
}

// TestASlowQueryDoesNotBlindTheRest has a resource that takes longer than a request may, wherever it stands among the
// others. A refresh lets one request run out of time, and the next one makes up for it.
func TestASlowQueryDoesNotBlindTheRest(t *testing.T) {
	for name, slow := range map[string]http.HandlerFunc{
		"the server gives up": timedOutIf("mine"),
		"a proxy gives up":    doesIf(answers(504, "<html>"), "mine"),
	} {
		steady := refresh{"cpu memory", "mine", []string{"cpu+memory", "mine"}}
		for _, test := range []struct {
			names string
			want  []refresh
		}{
			{"cpu memory mine", []refresh{
				{"", "", []string{"cpu+memory+mine"}},
				{"cpu memory", "mine", []string{"cpu", "memory", "mine"}},
				steady, steady,
			}},
			{"mine cpu memory", []refresh{
				{"", "", []string{"mine+cpu+memory"}},
				{"", "", []string{"mine"}},
				{"cpu memory", "mine", []string{"cpu", "memory", "mine"}},
				steady, steady,
			}},
			{"cpu mine memory", []refresh{
				{"", "", []string{"cpu+mine+memory"}},
				{"cpu", "mine memory", []string{"cpu", "mine"}},
				{"cpu memory", "mine", []string{"memory", "cpu", "mine"}},
				steady, steady,
			}},
		} {
			t.Run(name+"/"+test.names, func(t *testing.T) {
				queries := of(strings.Fields(test.names)...)
				s := serve(t, slow)
				c := client(t, prometheus(s.URL))
				expectRefreshes(t, c, s, queries, test.want...)
				// When it is quick again, it is asked for by itself once more, and then with the rest.
				s.becomes(healthy("a"))
				all := strings.Join(strings.Fields(test.names), "+")
				expectRefreshes(t, c, s, queries,
					refresh{test.names, "", []string{"cpu+memory", "mine"}}, refresh{test.names, "", []string{all}})
			})
		}
	}
}

// TestAQueryThatHangsDoesNotBlindTheRest: the client gives up, and has time left for the others.
func TestAQueryThatHangsDoesNotBlindTheRest(t *testing.T) {
	t.Parallel()
	s := serve(t, doesIf(hangs, "mine"))
	c := client(t, prometheus(s.URL))
	c.timeout = enough
	queries := of("cpu", "memory", "mine")
	expectRefreshes(t, c, s, queries,
		refresh{"", "", []string{"cpu+memory+mine"}}, refresh{"cpu memory", "mine", []string{"cpu", "memory", "mine"}})
	s.becomes(healthy("a"))
	expectRefreshes(t, c, s, queries,
		refresh{"cpu memory mine", "", []string{"cpu+memory", "mine"}}, refresh{"cpu memory mine", "", []string{"cpu+memory+mine"}})
}

// TestSeveralSlowQueriesTakeTurns: each refresh has time for one of them, and it is not always the same.
func TestSeveralSlowQueriesTakeTurns(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Form.Get("query"), "late") {
			timedOut(w, r)
			return
		}
		timedOutIf("slow")(w, r)
	})
	c := client(t, prometheus(s.URL))
	queries := of("slow", "cpu", "late", "memory")
	expectRefreshes(t, c, s, queries,
		refresh{"", "", []string{"slow+cpu+late+memory"}},
		refresh{"", "", []string{"slow"}},
		refresh{"cpu", "slow late memory", []string{"cpu", "late"}},
		refresh{"cpu memory", "slow late", []string{"memory", "cpu", "slow"}},
		refresh{"cpu memory", "slow late", []string{"cpu+memory", "late"}},
		refresh{"cpu memory", "slow late", []string{"cpu+memory", "slow"}})
	// What could not be asked keeps the reason for which it failed last.
	_, result, err := ask(c, queries...)
	if err != nil || !strings.Contains(fmt.Sprint(result.Failed[0]), "timed out") ||
		!strings.Contains(fmt.Sprint(result.Failed[2]), "timed out") {
		t.Errorf("got %v, %v", result.Failed, err)
	}
	// One of them stays slow, and the other does not wait for it.
	s.becomes(timedOutIf("slow"))
	expectRefreshes(t, c, s, queries,
		refresh{"cpu memory", "slow late", []string{"cpu+memory", "slow"}},
		refresh{"cpu late memory", "slow", []string{"cpu+memory", "late", "slow"}},
		refresh{"cpu late memory", "slow", []string{"cpu+late+memory", "slow"}})
}

// TestAServerThatIsSlowCostsOneRequest of each refresh, by turns for everything and for less, and for nothing else when
// it is back.
func TestAServerThatIsSlowCostsOneRequest(t *testing.T) {
	for _, count := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			queries := of("cpu", "memory", "network")[:count]
			for refreshes := 1; refreshes <= 8; refreshes++ {
				first, second := serve(t, timedOut), serve(t, timedOut)
				c := client(t, prometheus(first.URL, second.URL))
				for i := 1; i <= refreshes; i++ {
					_, result, err := ask(c, queries...)
					if err == nil || result.Requests != 2 {
						t.Fatalf("refresh %d: got %+v, %v, want one request to each endpoint", i, result, err)
					}
				}
				first.becomes(healthy("a"))
				for i := 1; i <= 2+apartFor; i++ {
					all, result, err := ask(c, queries...)
					if err != nil || len(all) != count || result.Failed != nil {
						t.Fatalf("after %d refreshes, refresh %d with a good server: got %v, %+v, %v", refreshes, i, all, result, err)
					}
					if i == 2+apartFor && result.Requests != 1 {
						t.Errorf("after %d refreshes, everything is still asked for in %d requests", refreshes, result.Requests)
					}
				}
			}
		})
	}
}

// TestAServerThatHangsLeavesTimeForTheNext when the client gives it up, and is as good as any when it is back.
func TestAServerThatHangsLeavesTimeForTheNext(t *testing.T) {
	t.Parallel()
	first, second := serve(t, hangs), serve(t, healthy("second"))
	c := client(t, prometheus(first.URL, second.URL))
	queries := of("cpu", "memory")
	c.timeout = enough
	expectRefreshes(t, c, second, queries, refresh{"cpu memory", "", []string{"cpu+memory"}})
	second.becomes(hangs)
	for i := 1; i <= 2; i++ {
		if _, result, err := ask(c, queries...); err == nil || result.Requests != 2 {
			t.Fatalf("refresh %d: got %+v, %v, want one request to each endpoint", i, result, err)
		}
	}
	first.becomes(healthy("first"))
	second.becomes(healthy("second"))
	for i := 1; i <= 2+apartFor; i++ {
		all, result, err := ask(c, queries...)
		if err != nil || len(all) != 2 || result.Failed != nil || i == 2+apartFor && result.Requests != 1 {
			t.Fatalf("refresh %d with good servers: got %v, %+v, %v", i, all, result, err)
		}
	}
}

func TestAServerThatHangsIsAskedForEverythingAgain(t *testing.T) {
	s := serve(t, timedOut)
	c := client(t, prometheus(s.URL))
	down := func(request string) refresh { return refresh{"", "", []string{request}} }
	round := []refresh{down("a+b+c"), down("a"), down("b"), down("c"), down("a")}
	expectRefreshes(t, c, s, of("a", "b", "c"), append(round, round...)...)
}

// TestQueriesThatAreSlowOnlyTogether are asked for one by one for some refreshes.
func TestQueriesThatAreSlowOnlyTogether(t *testing.T) {
	s := serve(t, timedOutIf("\nor\n"))
	c := client(t, prometheus(s.URL))
	together := refresh{"", "", []string{"a+b+c"}}
	apart := refresh{"a b c", "", []string{"a", "b", "c"}}
	var round []refresh
	for i := 0; i < apartFor; i++ {
		round = append(round, apart)
	}
	round = append([]refresh{together}, round...)
	expectRefreshes(t, c, s, of("a", "b", "c"), append(round, round...)...)
	s.becomes(healthy("a"))
	good := refresh{"a b c", "", []string{"a+b+c"}}
	expectRefreshes(t, c, s, of("a", "b", "c"), good, good)

	// One that is slow by itself is found, and then not taken for what makes the others slow.
	s.becomes(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Form.Get("query"), "mine") {
			timedOut(w, r)
			return
		}
		timedOutIf("\nor\n")(w, r)
	})
	c = client(t, prometheus(s.URL))
	found := refresh{"a b", "mine", []string{"a", "b", "mine"}}
	expectRefreshes(t, c, s, of("a", "b", "mine"),
		refresh{"", "", []string{"a+b+mine"}}, found, refresh{"", "", []string{"a+b"}}, found, found, found)
}

// TestWhoIsSlowInPartIsNotAskedFirst: another endpoint may know all of it. It gets its chance again, as the first
// endpoint always does.
func TestWhoIsSlowInPartIsNotAskedFirst(t *testing.T) {
	first, second := serve(t, timedOutIf("mine")), serve(t, healthy("a"))
	c := client(t, prometheus(first.URL, second.URL))
	now := time.Now()
	c.now = func() time.Time { return now }
	queries := of("cpu", "mine")
	partly := 0
	for i := 0; i < 60; i++ {
		all, result, err := ask(c, queries...)
		if err != nil || len(all)+len(result.Failed) != 2 {
			t.Fatalf("refresh %d: got %v, %+v, %v", i, all, result, err)
		}
		if len(result.Failed) > 0 {
			partly++
		}
		now = now.Add(30 * time.Second)
	}
	if partly == 0 || partly > 6 {
		t.Errorf("%d of 60 refreshes, in half an hour, have only a part; want one in 5 minutes", partly)
	}
	first.becomes(healthy("a"))
	now = now.Add(backToFirst)
	for i := 0; i < 3; i++ {
		if all, result, err := ask(c, queries...); err != nil || len(all) != 2 || result.Endpoint != c.endpoints[0].name {
			t.Errorf("the first endpoint is quick again: got %v, %+v, %v", all, result, err)
		}
	}
}

// TestACallersHasteSaysNothing about a server, which was not given its time.
func TestACallersHasteSaysNothing(t *testing.T) {
	ctx := newOverdue()
	s := serve(t, ctx.hangs)
	c := client(t, prometheus(s.URL))
	if _, _, err := askWithin(ctx, c, of("a", "b")...); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	s.becomes(healthy("a"))
	expectRefreshes(t, c, s, of("a", "b"), refresh{"a b", "", []string{"a+b"}})
}

// TestARequestThatIsCutShortSaysNothing: a request that had less than its own time says nothing about the query.
func TestARequestThatIsCutShortSaysNothing(t *testing.T) {
	t.Parallel()
	queries := of("a", "b", "c", "d")
	// On a slow machine, what is to take less than the time for a request may take more: then with longer times.
	for timeout := time.Second; ; timeout *= 2 {
		timeout := timeout
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.Form.Get("query"), "\nor\n") {
				answers(422, "")(w, r)
				return
			}
			select {
			case <-time.After(timeout * 7 / 10):
				healthy("a")(w, r)
			case <-r.Context().Done():
			}
		})
		c := client(t, prometheus(s.URL))
		c.timeout = timeout
		// The third one has what is left of twice the time.
		measured, failed, requests := asks(t, c, s, queries)
		if measured == "a b" && failed == "c d" && strings.Join(requests, " ") == "a+b+c+d a b c" {
			s.becomes(healthy("a"))
			c.timeout = time.Minute
			expectRefreshes(t, c, s, queries, refresh{"a b c d", "", []string{"a+b+c+d"}})
			return
		}
		if timeout > 10*time.Second {
			t.Fatalf("measured %q, failed %q and asked for %q", measured, failed, requests)
		}
	}
}

func TestWhatIsNotAskedForAnyMoreIsForgotten(t *testing.T) {
	s := serve(t, timedOutIf("slow"))
	c := client(t, prometheus(s.URL))
	for i := 0; i < 20; i++ {
		_, _, _ = ask(c, of("cpu", "memory", fmt.Sprint("slow", i))...)
	}
	if known := len(c.endpoints[0].turns.of); known > 3 {
		t.Errorf("%d queries are remembered, want no more than there are", known)
	}
}
