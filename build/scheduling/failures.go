// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/nextstep"
)

// moved is an error that another leader may not return.
type moved struct{ error }

func (m moved) Unwrap() error { return m.error }

var errStandby = errors.New("does not lead")

// check returns an error unless an answer is from the leader.
func (s *scheduler) check(leader leader, request request, content []byte) error {
	if request.path == loadPath {
		return nil // a plugin's answer, which does not report the leader
	}
	var found answer
	if err := json.Unmarshal(content, &found); err != nil {
		return nextstep.With(fmt.Errorf("the answer of the scheduler in pod %s is not JSON: %w", leader, err),
			"kubectl --namespace %s get pod %s --output yaml, and check its image", leader.namespace, leader.pod)
	}
	if !found.Leader {
		return s.standby(leader)
	}
	if found.LeaderIdentity != "" && found.LeaderIdentity != leader.identity {
		return moved{nextstep.With(fmt.Errorf("the scheduler in pod %s leads with another lease than %s, whose holder is %s",
			leader, s.lease, leader.identity),
			"set --lease to its lease; or kubectl --namespace %s get lease %s, and if its holder stays the same, check where the holder runs",
			s.lease.Namespace, s.lease.Name)}
	}
	return nil
}

func (s *scheduler) standby(leader leader) error {
	return moved{nextstep.With(fmt.Errorf("the scheduler in pod %s holds the lease %s, but %w", leader, s.lease, errStandby),
		"kubectl --namespace %s get lease %s, and if its holder stays the same, ask again", s.lease.Namespace, s.lease.Name)}
}

// failure returns the error of a request, with the next command.
func (s *scheduler) failure(ctx context.Context, leader leader, request request, failure error) error {
	refused := apierrors.APIStatus(nil)
	if !errors.As(failure, &refused) {
		return lost(leader, failure)
	}
	status, verb := refused.Status(), strings.ToLower(request.verb())
	switch {
	case status.Reason == reasonStandby:
		return s.standby(leader)
	case apierrors.IsUnauthorized(failure):
		return nextstep.With(fmt.Errorf("the scheduler in pod %s cannot authenticate you (401 Unauthorized): %w", leader, failure),
			"kubectl auth can-i %s %s, and check that your credentials are a client certificate or a token", verb, request.path)
	case apierrors.IsForbidden(failure):
		return nextstep.With(fmt.Errorf("you are not allowed to %s the path %s of the scheduler (nonResourceURLs): %w", verb, request.path, failure),
			"kubectl auth can-i %s %s; the ClusterRole %s of manifests/examples/records/read-scheduling-records.yaml allows it",
			verb, request.path, roleFor(request.path))
	case apierrors.IsNotFound(failure) && request.path == loadPath:
		return nextstep.With(fmt.Errorf("no profile of the scheduler in pod %s enables NodeLoad, or it is another version or stock", leader),
			"kubectl --namespace %s get pod %s --output yaml, and check its image and configuration", leader.namespace, leader.pod)
	case apierrors.IsNotFound(failure) && (status.Details == nil || status.Details.Kind == ""):
		return nextstep.With(fmt.Errorf("the scheduler in pod %s does not serve %s: its records are disabled (--record-pods=0), or it is another version or stock", leader, request.path),
			"kubectl --namespace %s get pod %s --output yaml, and check its image and command", leader.namespace, leader.pod)
	case apierrors.IsNotFound(failure):
		return moved{nextstep.With(failure, "%s", s.elsewhere(ctx, status.Details.Name, request.path))}
	case apierrors.IsConflict(failure):
		namespace, name, _ := strings.Cut(status.Details.Name, "/")
		return nextstep.With(failure, "kubectl scheduling --namespace %s why %s", argument(namespace), argument(name))
	}
	next := "kubectl --namespace " + leader.namespace + " logs " + leader.pod
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Type == nextCommand {
				next = cause.Message
			}
		}
	}
	return nextstep.With(fmt.Errorf("the scheduler in pod %s returned %d (%s): %w", leader, status.Code, http.StatusText(int(status.Code)), failure), "%s", next)
}

// lost returns the error for a failed connection.
func lost(leader leader, err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		// Its URL is only valid in the pod.
		err = outer.Err
	}
	return moved{nextstep.With(fmt.Errorf("the scheduler in pod %s does not answer: %w", leader, err),
		"kubectl --namespace %s get pod %s; or the same command with a longer --request-timeout", leader.namespace, leader.pod)}
}

// roleFor returns the ClusterRole that allows access to a path.
func roleFor(path string) string {
	if path == whatIfPath {
		return "ask-scheduling-what-if"
	}
	return "read-scheduling-records"
}

// elsewhere returns a command that shows more of a pod without records, or one for a pod of that name in another namespace,
// if the reader may list those.
func (s *scheduler) elsewhere(ctx context.Context, pod, path string) string {
	namespace, name, _ := strings.Cut(pod, "/")
	if s.client != nil {
		pods, err := s.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err == nil && len(pods.Items) > 0 && !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Namespace == namespace }) {
			return fmt.Sprintf("kubectl scheduling --namespace %s why %s", argument(pods.Items[0].Namespace), argument(name))
		}
	}
	command := fmt.Sprintf("kubectl --namespace %s get pod %s", argument(namespace), argument(name))
	if path == whatIfPath {
		return command
	}
	return command + " --output yaml, and check its schedulerName; kubectl scheduling queue lists the pending pods"
}
