// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/portforward"
)

const userToken = "user's-token"

// cluster is a fake API server that has a lease and pods, and forwards the pods' ports to schedulers.
type cluster struct {
	*httptest.Server
	mutex  sync.Mutex
	holder string
	// schedulers maps pods to addresses; nothing listens behind an empty address.
	schedulers map[string]string
	// forbidden lists the paths that the user may not access.
	forbidden string
	forwards  int
	// create answers the dry run of a pod's creation; nil: the user may not create pods.
	create func(pod *unstructured.Unstructured) error
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{holder: "cp1" + identity, schedulers: map[string]string{}}
	c.Server = httptest.NewTLSServer(c)
	t.Cleanup(c.Server.Close)
	return c
}

func (c *cluster) hold(holder string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.holder = holder
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	c.mutex.Lock()
	holder, forbidden := c.holder, c.forbidden
	c.mutex.Unlock()
	path := request.URL.Path
	respond := func(code int, object any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object)
	}
	name, isPod := strings.CutPrefix(path, "/api/v1/namespaces/kube-system/pods/")
	switch {
	case request.Header.Get("Authorization") != "Bearer "+userToken && len(request.TLS.PeerCertificates) == 0:
		respond(http.StatusUnauthorized, apierrors.NewUnauthorized("who?").Status())
	case forbidden != "" && strings.HasSuffix(path, forbidden):
		respond(http.StatusForbidden, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, name, nil).Status())
	case strings.HasSuffix(path, "/leases/kube-scheduler"):
		respond(http.StatusOK, newLease("kube-scheduler", holder))
	case path == "/api/v1/pods" && request.URL.Query().Get("fieldSelector") == "metadata.name=moved":
		respond(http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "moved"}}}})
	case isPod && strings.HasSuffix(name, "/portforward"):
		c.forward(w, request, strings.TrimSuffix(name, "/portforward"))
	case isPod:
		if _, there := c.schedulers[name]; there {
			respond(http.StatusOK, newPod(name, strings.TrimPrefix(name, "kube-scheduler-"), "kube-scheduler"))
			return
		}
		respond(http.StatusNotFound, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name).Status())
	case request.Method == http.MethodPost && strings.HasSuffix(path, "/pods") && request.URL.Query().Get("dryRun") == "All":
		pod, err := &unstructured.Unstructured{}, error(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "",
			errors.New(`User "u" cannot create resource "pods" in API group ""`)))
		if c.create != nil {
			if err = json.NewDecoder(request.Body).Decode(&pod.Object); err == nil {
				err = c.create(pod)
			}
		}
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			refused := status.Status()
			refused.Kind, refused.APIVersion = "Status", "v1"
			respond(int(refused.Code), refused)
			return
		}
		respond(http.StatusCreated, pod.Object)
	default:
		respond(http.StatusNotFound, apierrors.NewNotFound(schema.GroupResource{}, path).Status())
	}
}

// forward acts as kubelet.
func (c *cluster) forward(w http.ResponseWriter, request *http.Request, pod string) {
	if _, err := httpstream.Handshake(request, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return
	}
	c.mutex.Lock()
	c.forwards++
	c.mutex.Unlock()
	var mutex sync.Mutex
	errorStreams := map[string]httpstream.Stream{}
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, request, func(stream httpstream.Stream, replied <-chan struct{}) error {
		mutex.Lock()
		defer mutex.Unlock()
		id := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
		if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			errorStreams[id] = stream
			return nil
		}
		failed := errorStreams[id]
		go func() {
			<-replied
			defer failed.Close()
			defer stream.Close()
			conn, err := net.Dial("tcp", c.schedulers[pod])
			if err != nil {
				fmt.Fprintf(failed, "failed to connect to localhost:%s: connection refused", stream.Headers().Get(corev1.PortHeader))
				return
			}
			defer conn.Close()
			go func() {
				_, _ = io.Copy(conn, stream)
				conn.Close()
			}()
			_, _ = io.Copy(stream, conn)
		}()
		return nil
	})
	if connection == nil {
		return
	}
	defer connection.Close()
	<-connection.CloseChan()
}

// schedule starts a scheduler in a pod.
func (c *cluster) schedule(t *testing.T, pod string, answer http.HandlerFunc) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "Bearer "+userToken && len(request.TLS.PeerCertificates) == 0 {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		answer(w, request)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c.schedulers[pod] = server.Listener.Addr().String()
}

// kubeconfig writes a kubeconfig with a user's credentials.
func (c *cluster) kubeconfig(t *testing.T, user clientcmdapi.AuthInfo) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: c.URL, CertificateAuthorityData: c.certificate()}
	config.AuthInfos["u"] = &user
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: "shop"}
	config.CurrentContext = "c"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func (c *cluster) certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
}

// locked is a buffer that timers may write to as well.
type locked struct {
	mutex sync.Mutex
	bytes.Buffer
}

func (l *locked) Write(content []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.Buffer.Write(content)
}

// kubectl runs the plugin with the user's token, and returns its output.
func (c *cluster) kubectl(t *testing.T, ctx context.Context, arguments ...string) (out, errOut string, err error) {
	t.Helper()
	return c.kubectlAs(t, ctx, clientcmdapi.AuthInfo{Token: userToken}, arguments...)
}

func (c *cluster) kubectlAs(t *testing.T, ctx context.Context, user clientcmdapi.AuthInfo, arguments ...string) (out, errOut string, err error) {
	t.Helper()
	var stdout, stderr locked
	command := NewCommand("test", genericclioptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	command.SetArgs(append(arguments, "--kubeconfig", c.kubeconfig(t, user)))
	err = command.ExecuteContext(ctx)
	stderr.mutex.Lock()
	defer stderr.mutex.Unlock()
	return stdout.String(), stderr.String(), err
}

// answers is a scheduler that serves a fixed text for each path.
func answers(texts map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		if text, known := texts[request.URL.RequestURI()]; known && request.Header.Get("Accept") == "application/json" {
			fmt.Fprintln(w, text)
			return
		}
		refuse(w, http.StatusNotFound, `"reason": "NotFound", "details": {"kind": "pods", "name": "shop/web-0"}`, "there is no pod shop/web-0, or it has ended")
	}
}

// refuse sends a Status.
func refuse(w http.ResponseWriter, code int, fields, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind": "Status", "status": "Failure", "apiVersion": "v1", "code": %d, "message": %q, %s}`, code, message, fields)
}

// refusal plays a scheduler that sends a Status.
func refusal(code int, fields, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { refuse(w, code, fields, message) }
}

const (
	nextInASecond = `"details": {"causes": [{"reason": "NextCommand", "message": "ask again in a second"}], "retryAfterSeconds": 1}`
	isStandby     = `"reason": "Standby", "details": {"kind": "leases", "name": "cp2_1"}`
)

const bound = `{"apiVersion":"scheduling-records/v1alpha1","kind":"Pod","leader":true,"summary":"It is bound to node n1."}`

func TestWhy(t *testing.T) {
	c := newCluster(t)
	c.schedule(t, "kube-scheduler-cp1", answers(map[string]string{"/scheduling/pods/shop/web-0": bound, "/scheduling/pods/other/web-0": bound}))
	for _, arguments := range [][]string{{"why", "web-0"}, {"why", "pod/web-0"}, {"why", "web-0", "--namespace", "other"}} {
		out, errOut, err := c.kubectl(t, t.Context(), arguments...)
		if err != nil || out != "It is bound to node n1.\n" || errOut != "" {
			t.Errorf("%q: got %q and %q (%v)", arguments, out, errOut, err)
		}
	}
	out, _, err := c.kubectl(t, t.Context(), "why", "web-0", "-o", "json")
	if err != nil || !strings.HasPrefix(out, "{\n    \"apiVersion\": \"scheduling-records/v1alpha1\",\n    \"kind\": \"Pod\",\n    \"leader\": true,\n") {
		t.Errorf("got %q (%v), want the scheduler's fields in its order", out, err)
	}
	out, _, err = c.kubectl(t, t.Context(), "why", "web-0", "-o", "html")
	if err != nil || !strings.HasPrefix(out, "<!DOCTYPE html>") || !strings.Contains(out, "It is bound to node n1.") {
		t.Errorf("got %q (%v)", out, err)
	}
	out, _, err = c.kubectl(t, t.Context(), "why", "web-0", "-o", "yaml")
	if err != nil || !strings.Contains(out, "\nsummary: It is bound to node n1.\n") {
		t.Errorf("got %q (%v)", out, err)
	}
}

func TestCredentialsClientCertificate(t *testing.T) {
	c := newCluster(t)
	c.schedule(t, "kube-scheduler-cp1", answers(map[string]string{"/scheduling/pods/shop/web-0": bound}))
	c.Server.Close()
	c.Server = httptest.NewUnstartedServer(c)
	c.Server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	c.Server.StartTLS()
	t.Cleanup(c.Server.Close)
	key, err := x509.MarshalPKCS8PrivateKey(c.Server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	user := clientcmdapi.AuthInfo{ClientCertificateData: c.certificate(), ClientKeyData: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})}
	if out, _, err := c.kubectlAs(t, t.Context(), user, "why", "web-0"); err != nil || out != "It is bound to node n1.\n" {
		t.Errorf("got %q (%v)", out, err)
	}
}

func TestCredentialsExecPlugin(t *testing.T) {
	c := newCluster(t)
	c.schedule(t, "kube-scheduler-cp1", answers(map[string]string{"/scheduling/pods/shop/web-0": bound}))
	plugin := filepath.Join(t.TempDir(), "plugin")
	script := "#!/bin/sh\nprintf '%s' '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"" + userToken[:4] + "'\"'\"'" + userToken[5:] + "\"}}'\n"
	if err := os.WriteFile(plugin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	user := clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		Command: plugin, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode, ProvideClusterInfo: true,
	}}
	if out, _, err := c.kubectlAs(t, t.Context(), user, "why", "web-0"); err != nil || out != "It is bound to node n1.\n" {
		t.Errorf("got %q (%v)", out, err)
	}
}

func TestErrors(t *testing.T) {
	status := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, code) }
	}
	forbidden := func(w http.ResponseWriter, request *http.Request) {
		refuse(w, http.StatusForbidden, `"reason": "Forbidden"`,
			fmt.Sprintf(`forbidden: User "jane" cannot %s path "%s"`, strings.ToLower(request.Method), request.URL.Path))
	}
	written := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const aPod, aGroup = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "---\napiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: a}\n"
	pod, two, groups := written("pod.yaml", aPod), written("two.yaml", aPod+"---\n"+aPod), written("groups.yaml", aPod+aGroup+aGroup)
	service := written("service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n")
	why := []string{"why", "web-0"}
	for _, tt := range []struct {
		name      string
		arguments []string
		answer    http.HandlerFunc
		forbidden string
		want      []string
	}{
		{"no right to port-forward", why, nil, "/portforward", []string{
			"you are not allowed to create pods/kube-scheduler-cp1/portforward in namespace kube-system",
			"next: kubectl auth can-i create pods/kube-scheduler-cp1 --subresource portforward --namespace kube-system"}},
		{"no right to read the lease", why, nil, "/leases/kube-scheduler", []string{"you are not allowed to get leases"}},
		{"no right to read records", why, forbidden, "", []string{
			"you are not allowed to get the path /scheduling/pods/shop/web-0 of the scheduler (nonResourceURLs)", `User "jane" cannot get path`,
			"next: kubectl auth can-i get /scheduling/pods/shop/web-0; the ClusterRole read-scheduling-records of manifests/examples/records/read-scheduling-records.yaml"}},
		{"no right to post", []string{"what-if", "-f", pod}, forbidden, "", []string{"next: kubectl auth can-i post /scheduling/what-if;"}},
		{"not known", why, status(http.StatusUnauthorized, "Unauthorized"), "", []string{"cannot authenticate you (401 Unauthorized)"}},
		{"no record", why, answers(nil), "", []string{"there is no pod shop/web-0, or it has ended", "next: kubectl --namespace shop get pod web-0"}},
		{"a pod of another namespace", []string{"why", "moved"}, refusal(http.StatusNotFound, `"reason": "NotFound", "details": {"kind": "pods", "name": "shop/moved"}`, "there is no pod shop/moved"), "", []string{
			"next: kubectl scheduling --namespace other why moved"}},
		{"a pod that has a node", []string{"what-if", "web-0"}, refusal(http.StatusConflict, `"details": {"kind": "pods", "name": "shop/web-0"}`, "pod shop/web-0 is bound to node n1"), "", []string{
			"pod shop/web-0 is bound to node n1; next: kubectl scheduling --namespace shop why web-0"}},
		{"no records at all", why, status(http.StatusNotFound, "404 page not found"), "", []string{"kube-scheduler-cp1 does not serve /scheduling/pods/shop/web-0", "--record-pods=0"}},
		{"the scheduler's own words", why, status(http.StatusInternalServerError, "broken"), "", []string{
			`returned 500 (Internal Server Error): `, `broken`, `; next: kubectl --namespace kube-system logs kube-scheduler-cp1`}},
		{"no scheduler behind the port", why, nil, "", []string{"kubelet cannot reach the scheduler in pod kube-system/kube-scheduler-cp1 on its port 10259: failed to connect"}},
		{"a standby", why, status(http.StatusOK, `{"leader": false}`), "", []string{"holds the lease kube-system/kube-scheduler, but does not lead"}},
		{"a standby that cannot tell", []string{"what-if", "web-0"}, refusal(http.StatusServiceUnavailable, isStandby, "any text"), "", []string{"but does not lead"}},
		{"the leader of another lease", why, status(http.StatusOK, `{"leader": true, "leaderIdentity": "cp1_other"}`), "", []string{"leads with another lease than kube-system/kube-scheduler", "--lease"}},
		{"no right to ask", []string{"nodes", "web-0"}, status(http.StatusForbidden, "forbidden"), "", []string{"the ClusterRole ask-scheduling-what-if of"}},
		{"another form", why, status(http.StatusOK, `{"leader": true, "attempts": 3}`), "", []string{"has a format that this version of the plugin does not support", "--output json"}},
		{"no JSON", why, status(http.StatusOK, "<html>"), "", []string{"is not JSON"}},
		{"an unknown output", append(why, "-o", "name"), nil, "", []string{"--output name is unknown"}},
		{"an unknown lease", append(why, "--lease", "kube-system/none"), nil, "", []string{"there is no lease kube-system/none"}},
		{"another user", append(why, "--as", "jane"), nil, "", []string{"would use your own permissions instead of those of --as"}},
		{"a group", append(why, "--as-group", "g", "--as", "jane"), nil, "", []string{"would use your own permissions instead of those of --as"}},
		{"a name with a namespace", []string{"why", "shop/web-0"}, nil, "", []string{"not the name of a pod"}},
		{"no pod", []string{"what-if"}, nil, "", []string{"expected one pod"}},
		{"a pod and a file", []string{"nodes", "web-0", "-f", pod}, nil, "", []string{"expected one pod"}},
		{"no file", []string{"what-if", "-f", pod + ".none"}, nil, "", []string{"the manifest of a pod", "does not exist"}},
		{"not a pod", []string{"what-if", "-f", service}, nil, "", []string{"has 0 PodGroups and 0 objects with pods; expected one Pod"}},
		{"two pods of no gang", []string{"what-if", "-f", two}, nil, "", []string{"has 0 PodGroups and 2 objects with pods; expected one Pod, or those of one gang"}},
		{"two gangs", []string{"what-if", "-f", groups}, nil, "", []string{"has 2 PodGroups and 1 object with pods; expected one Pod, or those of one gang"}},
		{"a token that is not known", append(why, "--token", "other"), nil, "", []string{"the scheduler's lease kube-system/kube-scheduler: the server has asked for the client to provide credentials", "next: kubectl --namespace kube-system get lease kube-scheduler"}},
		{"no kubeconfig's context", append(why, "--context", "none"), nil, "", []string{"context was not found for specified context: none"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			c.forbidden = tt.forbidden
			if c.schedulers["kube-scheduler-cp1"] = ""; tt.answer != nil {
				c.schedule(t, "kube-scheduler-cp1", tt.answer)
			}
			_, _, err := c.kubectl(t, t.Context(), tt.arguments...)
			for _, want := range append(tt.want, "next: ") {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

func TestLeaderMoves(t *testing.T) {
	c := newCluster(t)
	c.schedule(t, "kube-scheduler-cp1", func(w http.ResponseWriter, _ *http.Request) {
		c.hold("cp2" + identity)
		fmt.Fprint(w, `{"leader": false}`)
	})
	c.schedule(t, "kube-scheduler-cp2", answers(map[string]string{"/scheduling/pods/shop/web-0": bound}))
	out, errOut, err := c.kubectl(t, t.Context(), "why", "web-0")
	if err != nil || out != "It is bound to node n1.\n" || !strings.Contains(errOut, "kube-scheduler-cp1 no longer leads") {
		t.Errorf("got %q and %q (%v)", out, errOut, err)
	}
	// The scheduler ended between the read of the lease and the request.
	for _, answer := range []http.HandlerFunc{answers(nil), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }} {
		c.hold("cp3" + identity)
		c.schedule(t, "kube-scheduler-cp3", func(w http.ResponseWriter, request *http.Request) {
			c.hold("cp2" + identity)
			answer(w, request)
		})
		if out, _, err := c.kubectl(t, t.Context(), "why", "web-0"); err != nil || out != "It is bound to node n1.\n" {
			t.Errorf("got %q (%v)", out, err)
		}
	}
}

func TestRetryAfter429(t *testing.T) {
	c := newCluster(t)
	asked := 0
	c.schedule(t, "kube-scheduler-cp1", func(w http.ResponseWriter, request *http.Request) {
		if asked++; asked < 3 {
			w.Header().Set("Retry-After", "0")
			refuse(w, http.StatusTooManyRequests, nextInASecond, "too many requests")
			return
		}
		fmt.Fprint(w, bound)
	})
	out, _, err := c.kubectl(t, t.Context(), "why", "web-0")
	if err != nil || out != "It is bound to node n1.\n" || asked != 3 {
		t.Errorf("got %q after %d requests (%v)", out, asked, err)
	}
	c.schedule(t, "kube-scheduler-cp1", func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Retry-After", "0")
		refuse(w, http.StatusTooManyRequests, nextInASecond, "too many requests")
	})
	if _, _, err := c.kubectl(t, t.Context(), "why", "web-0"); err == nil || !strings.Contains(err.Error(), "429") || !strings.Contains(err.Error(), "next: ask again in a second") {
		t.Errorf("got %v", err)
	}
}

func TestTimeoutAndCancel(t *testing.T) {
	c := newCluster(t)
	asked := make(chan struct{}, 1)
	c.schedule(t, "kube-scheduler-cp1", func(_ http.ResponseWriter, request *http.Request) {
		asked <- struct{}{}
		<-request.Context().Done()
	})
	if _, _, err := c.kubectl(t, t.Context(), "why", "web-0", "--request-timeout", "200ms"); err == nil || !strings.Contains(err.Error(), "--request-timeout") {
		t.Errorf("got %v", err)
	}
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	begun := time.Now()
	if _, _, err := c.kubectl(t, ctx, "why", "web-0"); err == nil || time.Since(begun) > 10*time.Second {
		t.Errorf("after Ctrl-C: %v, after %s", err, time.Since(begun))
	}
}

func TestWhatIf(t *testing.T) {
	c := newCluster(t)
	var asked []string
	var pod corev1.Pod
	c.schedule(t, "kube-scheduler-cp1", func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		pod = corev1.Pod{}
		if len(body) > 0 {
			if err := json.Unmarshal(body, &pod); err != nil {
				t.Error(err)
			}
		}
		asked = append(asked, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", request.Method, request.URL.RequestURI(), pod.Namespace, pod.Name)))
		fmt.Fprint(w, `{"leader": true, "summary": "It fits.", "verdicts": [{"node": "n1", "fits": true, "total": 7}]}`)
	})
	file := filepath.Join(t.TempDir(), "pod.yaml")
	write := func(namespace string) {
		if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Pod\nmetadata:\n  name: new\n"+namespace+"spec: {containers: [{name: a, image: b}]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	for _, tt := range []struct {
		arguments []string
		want, out string
	}{
		{[]string{"what-if", "web-0"}, "GET /scheduling/what-if?pod=shop%2Fweb-0", "It fits.\n"},
		{[]string{"nodes", "web-0", "-n", "a"}, "GET /scheduling/what-if?nodes=all&pod=a%2Fweb-0", "It fits.\n\nNODE   FITS   SCORE   REASON\nn1     yes    7       <none>\n"},
		{[]string{"what-if", "-f", file}, "POST /scheduling/what-if shop new", "It fits.\n"},
		{[]string{"nodes", "-f", file, "-n", "a"}, "POST /scheduling/what-if?nodes=all a new", "It fits.\n\nNODE   FITS   SCORE   REASON\nn1     yes    7       <none>\n"},
	} {
		asked = nil
		out, _, err := c.kubectl(t, t.Context(), tt.arguments...)
		if err != nil || len(asked) != 1 || asked[0] != tt.want || out != tt.out {
			t.Errorf("%q: asked %q, printed %q (%v); want %q and %q", tt.arguments, asked, out, err, tt.want, tt.out)
		}
	}
	write("  namespace: own\n")
	asked = nil
	if _, _, err := c.kubectl(t, t.Context(), "what-if", "-f", file); err != nil || asked[0] != "POST /scheduling/what-if own new" {
		t.Errorf("asked %q (%v), want the namespace of the file", asked, err)
	}
	if _, _, err := c.kubectl(t, t.Context(), "what-if", "-f", file, "-n", "a"); err == nil || !strings.Contains(err.Error(), "has the namespace own, but --namespace is a") {
		t.Errorf("got %v", err)
	}
	c.create = func(created *unstructured.Unstructured) error {
		if created.GetName() != "" || created.GetGenerateName() != "new-" || created.GetNamespace() != "own" {
			t.Errorf("a dry run creates %v, want any name, because new may exist", created)
		}
		created.SetName("new-x")
		return unstructured.SetNestedField(created.Object, int64(7), "spec", "priority")
	}
	if _, _, err := c.kubectl(t, t.Context(), "what-if", "-f", file); err != nil || pod.Name != "new" || pod.Spec.Priority == nil || *pod.Spec.Priority != 7 {
		t.Errorf("the scheduler gets %+v (%v), want the priority that the API server sets", pod, err)
	}
	asked = nil
	c.create = func(*unstructured.Unstructured) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "own")
	}
	if _, _, err := c.kubectl(t, t.Context(), "what-if", "-f", file); err == nil || len(asked) > 0 ||
		!strings.Contains(err.Error(), `does not accept the pod: namespaces "own" not found; next: correct it; kubectl --namespace own create`) {
		t.Errorf("a namespace that does not exist: got %v, and asked %q", err, asked)
	}
}

func TestWhatIfOfGang(t *testing.T) {
	c := newCluster(t)
	var body string
	c.schedule(t, "kube-scheduler-cp1", func(w http.ResponseWriter, request *http.Request) {
		var list struct {
			Kind              string
			Items             []unstructured.Unstructured
			metav1.ObjectMeta `json:"metadata"`
		}
		if err := json.NewDecoder(request.Body).Decode(&list); err != nil {
			t.Error(err)
		}
		body = list.Kind + " " + list.Namespace + "/" + list.Name
		for _, item := range list.Items {
			priority, _, _ := unstructured.NestedInt64(item.Object, "spec", "priority")
			body += fmt.Sprintf("; %s %s/%s, priority %d, copies %q", item.GetKind(), item.GetNamespace(), item.GetName(), priority, item.GetAnnotations()[copiesAnnotation])
		}
		fmt.Fprint(w, `{"leader": true, "summary": "The gang shop/job fits."}`)
	})
	creations := 0
	c.create = func(created *unstructured.Unstructured) error {
		creations++
		return unstructured.SetNestedField(created.Object, int64(7), "spec", "priority")
	}
	const (
		group    = "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: job}\nspec: {minMember: 2}\n---\n"
		service  = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\n"
		labels   = "labels: {pod-group.scheduling.sigs.k8s.io: job}"
		pod      = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, " + labels + "}\nspec: {containers: [{name: a, image: b}]}\n---\n"
		workload = "apiVersion: apps/v1\nkind: %s\nmetadata: {name: w}\nspec: {%s, template: {metadata: {" + labels + "}, spec: {containers: [{name: a, image: b}]}}}\n---\n"
	)
	for manifest, want := range map[string]string{
		service + fmt.Sprintf(pod, "a") + fmt.Sprintf(pod, "b") + group: `List /; PodGroup shop/job, priority 0, copies ""; Pod shop/a, priority 7, copies ""; Pod shop/b, priority 7, copies ""`,
		fmt.Sprintf(pod, "a"): `Pod shop/a`,
		group + fmt.Sprintf(workload, "Job", "parallelism: 512"):                                     `List /; PodGroup shop/job, priority 0, copies ""; Pod shop/w, priority 7, copies "512"`,
		fmt.Sprintf(workload, "Job", "parallelism: 4, completions: 3"):                               `List /; Pod shop/w, priority 7, copies "3"`,
		fmt.Sprintf(workload, "StatefulSet", "replicas: 3") + fmt.Sprintf(pod, "b"):                  `List /; Pod shop/w, priority 7, copies "3"; Pod shop/b, priority 7, copies ""`,
		strings.ReplaceAll(fmt.Sprintf(workload, "Deployment", "replicas: 3"), labels, "labels: {}"): `Pod shop/w`,
	} {
		file := filepath.Join(t.TempDir(), "gang.yaml")
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		creations = 0
		if out, _, err := c.kubectl(t, t.Context(), "what-if", "-f", file); err != nil || body != want || out != "The gang shop/job fits.\n" || creations != strings.Count(want, "Pod ") {
			t.Errorf("asked %q after %d dry runs, printed %q (%v); want %q", body, creations, out, err, want)
		}
	}
}

func TestQueue(t *testing.T) {
	c := newCluster(t)
	c.schedule(t, "kube-scheduler-cp1", answers(map[string]string{"/scheduling/queue": `{"leader": true, "items": [{"namespace": "a", "name": "one"}, {"namespace": "b", "name": "two"}], "lengths": {"active": 1, "unschedulable": 6001}}`}))
	for _, tt := range []struct {
		arguments []string
		one, two  bool
	}{{[]string{"queue"}, true, true}, {[]string{"queue", "-n", "a"}, true, false}, {[]string{"queue", "-n", "c"}, false, false}} {
		out, _, err := c.kubectl(t, t.Context(), tt.arguments...)
		if err != nil || strings.Contains(out, "one") != tt.one || strings.Contains(out, "two") != tt.two || !strings.HasSuffix(out, "\n6000 more pods are pending, but not listed.\n") {
			t.Errorf("%q: got %q (%v)", tt.arguments, out, err)
		}
	}
}
