// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-scheduler-fork/build/nextstep"
)

// moved is an error that another leader may not return.
type moved struct{ error }

func (m moved) Unwrap() error { return m.error }

var errStandby = errors.New("does not lead")

// judge returns the content of an answer, unless it is an error or is not from the leader.
func (s *scheduler) judge(session *session, request request, response *http.Response, content []byte) ([]byte, error) {
	leader := session.leader
	if response.StatusCode != http.StatusOK {
		return nil, s.failure(leader, request, response, failureOf(response, content))
	}
	if request.path == loadPath {
		return content, nil // a plugin's answer, which does not report the leader
	}
	var found answer
	if err := json.Unmarshal(content, &found); err != nil {
		return nil, nextstep.With(fmt.Errorf("the answer of the scheduler in pod %s is not JSON: %w", leader, err),
			"kubectl --namespace %s get pod %s --output yaml, and check its image", leader.namespace, leader.pod)
	}
	if !found.Leader {
		return nil, s.standby(leader)
	}
	if found.LeaderIdentity != "" && found.LeaderIdentity != leader.identity {
		return nil, moved{nextstep.With(fmt.Errorf("the scheduler in pod %s leads with another lease than %s, whose holder is %s",
			leader, s.lease, escape(leader.identity)),
			"set --lease to its lease; or kubectl --namespace %s get lease %s, and if its holder stays the same, check where the holder runs",
			s.lease.Namespace, s.lease.Name)}
	}
	return content, nil
}

func (s *scheduler) standby(leader leader) error {
	return moved{nextstep.With(fmt.Errorf("the scheduler in pod %s holds the lease %s, but %w", leader, s.lease, errStandby),
		"kubectl --namespace %s get lease %s, and if its holder stays the same, ask again", s.lease.Namespace, s.lease.Name)}
}

// failureOf returns the error in an answer: a Status, or the text of a server that sends none.
func failureOf(response *http.Response, content []byte) *apierrors.StatusError {
	failure := &apierrors.StatusError{}
	status := &failure.ErrStatus
	if json.Unmarshal(content, status) != nil || status.Kind != "Status" {
		*status = metav1.Status{Message: string(content)}
	}
	if status.Reason == "" {
		status.Reason = apierrors.NewGenericServerResponse(response.StatusCode, "", schema.GroupResource{}, "", "", 0, false).ErrStatus.Reason
	}
	const longest = 2000
	status.Code, status.Message = int32(response.StatusCode), strings.TrimSpace(status.Message[:min(len(status.Message), longest)])
	status.Message = escape(status.Message)
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	return failure
}

// failure returns an error with the next command.
func (s *scheduler) failure(leader leader, request request, response *http.Response, failure *apierrors.StatusError) error {
	status := failure.ErrStatus
	switch {
	case status.Reason == reasonStandby:
		return s.standby(leader)
	case apierrors.IsUnauthorized(failure):
		return nextstep.With(fmt.Errorf("the scheduler in pod %s cannot authenticate you (401 Unauthorized): %w", leader, failure),
			"kubectl auth can-i %s %s, and check that your credentials are a client certificate or a token", request.verb(), request.path)
	case apierrors.IsForbidden(failure):
		return nextstep.With(fmt.Errorf("you are not allowed to %s the path %s of the scheduler (nonResourceURLs): %w", request.verb(), request.path, failure),
			"kubectl auth can-i %s %s; the ClusterRole %s of manifests/examples/records/read-scheduling-records.yaml allows it",
			request.verb(), request.path, roleFor(request.path))
	case apierrors.IsNotFound(failure) && request.path == loadPath:
		return nextstep.With(fmt.Errorf("no profile of the scheduler in pod %s enables NodeLoad, or it is another version or stock", leader),
			"kubectl --namespace %s get pod %s --output yaml, and check its image and configuration", leader.namespace, leader.pod)
	case apierrors.IsNotFound(failure) && status.Details.Kind == "":
		return nextstep.With(fmt.Errorf("the scheduler in pod %s does not serve %s: its records are disabled (--record-pods=0), or it is another version or stock", leader, request.path),
			"kubectl --namespace %s get pod %s --output yaml, and check its image and command", leader.namespace, leader.pod)
	case apierrors.IsNotFound(failure):
		return moved{nextstep.With(failure, "%s", elsewhere(status.Details.Name, request.path))}
	case apierrors.IsConflict(failure):
		namespace, name, _ := strings.Cut(status.Details.Name, "/")
		return nextstep.With(failure, "kubectl scheduling --namespace %s why %s", namespace, name)
	}
	next := "kubectl --namespace " + leader.namespace + " logs " + leader.pod
	for _, cause := range status.Details.Causes {
		if cause.Type == nextCommand {
			next = escape(cause.Message)
		}
	}
	return nextstep.With(fmt.Errorf("the scheduler in pod %s returned %s: %w", leader, escape(response.Status), failure), "%s", next)
}

// roleFor returns the ClusterRole that allows access to a path.
func roleFor(path string) string {
	if path == whatIfPath {
		return "ask-scheduling-what-if"
	}
	return "read-scheduling-records"
}

// elsewhere returns a command that shows more of a pod without records.
func elsewhere(pod, path string) string {
	namespace, name, _ := strings.Cut(escape(pod), "/")
	command := fmt.Sprintf("kubectl --namespace %s get pod %s", namespace, name)
	if path == whatIfPath {
		return command
	}
	return command + " --output yaml, and check its schedulerName; kubectl scheduling queue lists the pending pods"
}
