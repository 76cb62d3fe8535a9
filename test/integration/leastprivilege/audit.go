// SPDX-License-Identifier: Apache-2.0

package leastprivilege

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// decision is the annotation in which the API server's authorizer says what it decided: "allow" or "forbid".
const decision = "authorization.k8s.io/decision"

// Request is what the API server's authorizer was asked: may this user do that? Rules of RBAC have an answer to nothing
// else, so requests that differ only in other things are one.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection; the HTTP method in small letters for a
	// Path.
	Verb string
	// Group is the API group; empty is the core group.
	Group string
	// Resource is the plural, with its subresource behind a slash: pods/binding.
	Resource string
	// Namespace is empty for resources that are in none, and for requests over all of them.
	Namespace string
	// Name is empty where the authorizer knows none: of what is being created, and of lists but those of a single object.
	Name string
	// Path is set instead of Group and Resource for a request that is about no resource, such as /healthz.
	Path string
	// Allowed says that the authorizer let it pass; what became of it afterwards is of no interest here.
	Allowed bool
}

// String says the request in words.
func (r Request) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	return r.Verb + " " + describe(r.Group, r.Resource, r.Namespace, r.Name)
}

// describe names a resource: pods/binding in kube-system named x.
func describe(group, resource, namespace, name string) string {
	text := qualified(group, resource)
	if name != "" {
		text += " " + name
	}
	if namespace != "" {
		text += " in " + namespace
	}
	return text
}

// qualified gives a resource with its group, as kubectl writes it: leases.coordination.k8s.io; the subresource stays at
// the end.
func qualified(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// Usage counts the requests of one user.
type Usage map[Request]int

// ReadAudit reads the audit log of an API server, a JSON object of audit.k8s.io/v1 a line, and gives what a user asked
// for. The log may be one that is still written to: half a line at its end is left out. Requests that never came to the
// authorizer (too many at a time) are left out too.
func ReadAudit(log io.Reader, user string) (Usage, error) {
	usage := Usage{}
	// A watch is there twice, as it starts and as it ends.
	seen := map[types.UID]bool{}
	reader := bufio.NewReader(log)
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return usage, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, wrongLine(number, err)
		}
		if event.Kind != "Event" || event.APIVersion != auditv1.SchemeGroupVersion.String() {
			return nil, wrongLine(number, fmt.Errorf("it is a %q of %q", event.Kind, event.APIVersion))
		}
		decided := event.Annotations[decision]
		if event.User.Username != user || decided == "" || seen[event.AuditID] {
			continue
		}
		seen[event.AuditID] = true
		usage[requestOf(&event, decided == "allow")]++
	}
}

func wrongLine(number int, err error) error {
	return fmt.Errorf("line %d of the audit log is no event of %s: %w; "+
		"next: give the file of the API server's flag --audit-log-path", number, auditv1.SchemeGroupVersion, err)
}

func requestOf(event *auditv1.Event, allowed bool) Request {
	object := event.ObjectRef
	if object == nil {
		path, _, _ := strings.Cut(event.RequestURI, "?")
		return Request{Verb: event.Verb, Path: path, Allowed: allowed}
	}
	request := Request{
		Verb: event.Verb, Group: object.APIGroup, Resource: object.Resource, Namespace: object.Namespace, Name: object.Name,
		Allowed: allowed,
	}
	switch {
	case object.Subresource != "":
		request.Resource += "/" + object.Subresource
	case event.Verb == "create":
		// The log has the name from the answer; the authorizer was asked before anybody knew it.
		request.Name = ""
	}
	return request
}
