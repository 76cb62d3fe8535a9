// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Account names a service account.
type Account struct{ Namespace, Name string }

// User returns its user name.
func (a Account) User() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

// CreateAccount ensures a service account with roles of its namespace and of the cluster.
func (c *Cluster) CreateAccount(t testing.TB, account Account, roles ...rbacv1.RoleRef) {
	t.Helper()
	client, ctx := c.Client(), t.Context()
	create := func(err error) {
		t.Helper()
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	_, err := client.CoreV1().ServiceAccounts(account.Namespace).Create(
		ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account.Name}}, metav1.CreateOptions{})
	create(err)
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}}
	for _, role := range roles {
		role.APIGroup = rbacv1.GroupName
		meta := metav1.ObjectMeta{Name: account.Name + ":" + role.Name}
		if role.Kind == "Role" {
			binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}
			_, err = client.RbacV1().RoleBindings(account.Namespace).Create(ctx, binding, metav1.CreateOptions{})
		} else {
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}
			_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		}
		create(err)
	}
}

// Token returns a bearer token of a service account.
func (c *Cluster) Token(t testing.TB, account Account) string {
	t.Helper()
	request, err := c.Client().CoreV1().ServiceAccounts(account.Namespace).CreateToken(
		t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// AwaitAllowed waits until the API server allows a request, because new rules take effect a moment after they are
// stored.
func (c *Cluster) AwaitAllowed(t testing.TB, question authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: question}
	c.Await(t, fmt.Sprintf("the API server to allow: %+v", question), func() error {
		reviews := c.Client().AuthorizationV1().SubjectAccessReviews()
		answer, err := reviews.Create(t.Context(), review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("refused: %s", answer.Status.Reason)
		}
		return err
	})
}

// Get returns a page of a scheduler, as an administrator.
func (c *Cluster) Get(ctx context.Context, url string) ([]byte, error) {
	code, content, err := c.Ask(ctx, http.MethodGet, url, nil)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, http.StatusText(code), content)
	}
	return content, err
}

// Ask sends a request to a scheduler, as an administrator, or as the owner of a token; an empty one is anonymous. It
// returns the status and the answer.
func (c *Cluster) Ask(ctx context.Context, method, url string, body io.Reader, token ...string) (int, []byte, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return 0, nil, err
	}
	if len(token) > 0 {
		config = rest.AnonymousClientConfig(config)
		config.BearerToken = token[0]
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, nil, err
	}
	client.Timeout = time.Minute // a waiting test retries
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, content, err
}

// AllRequests is an AuditPolicy that logs every request when it is answered, and a watch when it begins.
const AllRequests = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// Audit returns the API server's audit log since the test began. A line may come late, because the log is written after
// the answer.
func (c *Cluster) Audit(t testing.TB) []auditv1.Event {
	t.Helper()
	return slices.DeleteFunc(ReadAudit(t, c.auditLog), func(event auditv1.Event) bool {
		return event.RequestReceivedTimestamp.Time.Before(c.began)
	})
}

// ReadAudit reads an audit log without an incomplete last line.
func ReadAudit(t testing.TB, file string) []auditv1.Event {
	t.Helper()
	log, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var events []auditv1.Event
	for line := range bytes.Lines(log[:bytes.LastIndexByte(log, '\n')+1]) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%s: %v: %s", file, err, line)
		}
		events = append(events, event)
	}
	return events
}

// Pod returns a pod.
func (c *Cluster) Pod(t testing.TB, namespace, name string) (*corev1.Pod, error) {
	return c.Client().CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
}
