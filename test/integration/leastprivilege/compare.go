// SPDX-License-Identifier: Apache-2.0

// Package leastprivilege compares what somebody may do in a cluster with what they did: the rules of RBAC in manifests with
// the audit log of an API server. It finds what the rules grant too much, and what they lack.
package leastprivilege

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Finding is one thing that is wrong with the rules.
type Finding struct {
	// What is the grant or the request, in words.
	What string
	// Why says what is wrong with it.
	Why string
	// Next is what to do about it.
	Next string
}

// Comparison is what came out of comparing rules with requests.
type Comparison struct {
	// Findings are empty when the rules grant what was used, and nothing else.
	Findings []Finding
	grants   []Grant
	// requests counts the requests that each grant allowed.
	requests []int
	// paths are the requests for no resource that something else than the rules allowed.
	paths []Request
	usage Usage
}

// Compare compares the grants of a user with what the user used.
func Compare(grants []Grant, usage Usage) *Comparison {
	c := &Comparison{grants: grants, requests: make([]int, len(grants)), usage: usage}
	// coveredBy gives for each request the grants that are a reason to allow it.
	coveredBy := map[Request][]int{}
	for _, request := range sortedRequests(usage) {
		for i, grant := range grants {
			if grant.covers(request) {
				coveredBy[request] = append(coveredBy[request], i)
				c.requests[i] += usage[request]
			}
		}
		c.judgeRequest(request, len(coveredBy[request]) > 0)
	}
	for i := range grants {
		c.judgeGrant(i, coveredBy)
	}
	return c
}

// judgeRequest looks for what the rules lack.
func (c *Comparison) judgeRequest(request Request, covered bool) {
	switch {
	case !request.Allowed:
		c.find(request.String(), "it was asked for and refused", "grant it in a role, or see to it that nobody asks")
	case covered:
	case request.Path != "":
		// Every user may see which APIs there are; a role that grants it once more would say nothing.
		c.paths = append(c.paths, request)
	default:
		c.find(request.String(), "it was allowed, but not by these rules",
			"grant it in a role: on another cluster it may be refused")
	}
}

// judgeGrant looks for what the rules grant too much.
func (c *Comparison) judgeGrant(i int, coveredBy map[Request][]int) {
	grant := c.grants[i]
	what := grant.Role + ": " + grant.String()
	if strings.Contains(grant.Verb+grant.Group+grant.Resource+grant.Path, "*") {
		c.find(what, "a wildcard grants what nobody has asked for yet", "name what it stands for")
		return
	}
	if c.requests[i] == 0 {
		c.find(what, "it was never used", "take it out of the role, or let the test use it")
		return
	}
	alone := false
	namespaces, names := map[string]bool{}, map[string]bool{}
	for request, reasons := range coveredBy {
		if slices.Contains(reasons, i) {
			alone = alone || len(reasons) == 1
			namespaces[request.Namespace] = true
			names[request.Name] = true
		}
	}
	if !alone {
		c.find(what, "another rule grants all of it that was used", "take one of the two out")
		return
	}
	if only := onlyOne(namespaces); grant.Namespace == "" && only != "" {
		c.find(what, "it holds everywhere, but was only used in "+only,
			"move it to a Role there, or let the test use it elsewhere too")
	}
	if only := onlyOne(names); grant.Name == "" && only != "" {
		c.find(what, "it holds for all objects, but was only used for "+only,
			"give the rule resourceNames, or let the test use it for another too")
	}
}

func (c *Comparison) find(what, why, next string) {
	c.Findings = append(c.Findings, Finding{what, why, next})
}

// onlyOne gives the one key of a set; empty if there are more.
func onlyOne(set map[string]bool) string {
	if len(set) != 1 {
		return ""
	}
	for key := range set {
		return key
	}
	return ""
}

// Err is nil when there are no findings.
func (c *Comparison) Err() error {
	var failures []error
	for _, finding := range c.Findings {
		failures = append(failures, fmt.Errorf("%s: %s; next: %s", finding.What, finding.Why, finding.Next))
	}
	return errors.Join(failures...)
}

// WriteTable writes a row for each grant, with the number of requests that it allowed, and then what was asked for
// beside them.
func (c *Comparison) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "RESOURCE\tVERB\tWHERE\tNAME\tREQUESTS\tGRANTED BY")
	order := make([]int, len(c.grants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := c.grants[i], c.grants[j]
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
	})
	for _, i := range order {
		g := c.grants[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\n", qualified(g.Group, g.Resource)+g.Path, g.Verb,
			cmp.Or(g.Namespace, "everywhere"), cmp.Or(g.Name, "any"), c.requests[i], g.Role)
	}
	for _, request := range c.paths {
		fmt.Fprintf(table, "%s\t%s\t\t\t%d\t%s\n", request.Path, request.Verb, c.usage[request], "(every user)")
	}
	return table.Flush()
}

// sortedRequests gives the requests in an order that is the same each time.
func sortedRequests(usage Usage) []Request {
	return slices.SortedFunc(maps.Keys(usage), func(a, b Request) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Path, b.Path),
			strings.Compare(a.Verb, b.Verb), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}
