;;; emacs.el --- a client with Emacs's own jsonrpc.el  -*- lexical-binding: t; coding: utf-8 -*-

;; The daemon's socket is named by DWELL_SOCKET.  Run with `emacs -Q --batch -l emacs.el'.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)

(defvar dwell-events nil "Events that have come and were not looked at, oldest first.")

(defun dwell-connect ()
  "Connect to the daemon."
  (make-instance
   'jsonrpc-process-connection
   :name "dwell"
   :events-buffer-scrollback-size 0
   :process (lambda ()
              (make-network-process :name "dwell" :family 'local :service (getenv "DWELL_SOCKET")
                                    :coding 'utf-8-emacs-unix))
   :notification-dispatcher
   (lambda (_connection method params)
     (when (eq method 'session/event)
       (setq dwell-events (append dwell-events (list (plist-get params :result))))))))

(defvar dwell--jsonrpc nil "The connection.")

(defun dwell-listen ()
  "Let messages come for a moment.
An answer may leave those that came with it in the library's buffer, as
older releases do, so that it is asked to look there again."
  (accept-process-output nil 0.05)
  (let ((process (jsonrpc--process dwell--jsonrpc)))
    (funcall (process-filter process) process "")))

(defun dwell-event (type)
  "Wait for the next event of TYPE and return it; those before it are passed over."
  (let ((end (+ (float-time) 30)) found)
    (while (not found)
      (when (> (float-time) end)
        (error "No %s came" type))
      (if dwell-events
          (let ((event (pop dwell-events)))
            (when (equal (plist-get event :type) type)
              (setq found event)))
        (dwell-listen)))
    found))

(defun dwell-check (what got wanted)
  "Fail unless WHAT, which is GOT, is WANTED."
  (unless (equal got wanted)
    (error "%s is %S and not %S" what got wanted)))

(let* ((dwell (setq dwell--jsonrpc (dwell-connect)))
       (call (lambda (method &rest params) (jsonrpc-request dwell method params :timeout 30)))
       (hello (funcall call 'initialize :protocol 1 :client '(:name "emacs.el" :version "1")))
       (session (plist-get (funcall call 'session/create
                                    :cwd (directory-file-name (expand-file-name default-directory))
                                    :provider "script")
                           :id)))
  (dwell-check "the protocol" (plist-get hello :protocol) 1)
  ;; No parameters at all are `null' on the wire.
  (jsonrpc-request dwell 'daemon/status nil :timeout 30)
  (funcall call 'session/attach :session session)

  ;; A turn with a call that has to be allowed.
  (funcall call 'turn/start :session session
           :text "say grün 😀\ndo execute {\"command\": \"echo ran > emacs.txt\"}\nsay , done")
  (let ((asked (dwell-event "approval_asked")))
    (dwell-check "what would run" (plist-get (plist-get asked :arguments) :command) "echo ran > emacs.txt")
    (funcall call 'approval/answer :approval (plist-get asked :approval) :answer "allow"))
  (dwell-check "the turn's end" (plist-get (dwell-event "turn_ended") :status) "completed")
  (let* ((history (plist-get (funcall call 'session/history :session session) :events))
         (said (cl-remove-if-not (lambda (event) (equal (plist-get event :type) "said")) history)))
    (dwell-check "what was said" (mapconcat (lambda (event) (plist-get event :text)) said "") "grün 😀, done"))

  ;; One that is stopped.
  (funcall call 'turn/start :session session :text "wait 60000")
  (funcall call 'turn/cancel :session session)
  (dwell-check "the turn's end" (plist-get (dwell-event "turn_ended") :status) "cancelled")

  ;; Several calls under way at once.
  (let ((answers 0) (end (+ (float-time) 30)))
    (dotimes (_ 50)
      (jsonrpc-async-request dwell 'session/get (list :session session)
                             :success-fn (lambda (_) (cl-incf answers))))
    (while (and (< answers 50) (< (float-time) end))
      (dwell-listen))
    (dwell-check "the number of answers" answers 50))

  ;; The connection goes, and whatever happens meanwhile is there afterwards, once.
  (let ((last (plist-get (funcall call 'session/get :session session) :seq)))
    (jsonrpc-shutdown dwell)
    (setq dwell-events nil
          dwell (setq dwell--jsonrpc (dwell-connect)))
    (funcall call 'turn/wait :turn (plist-get (funcall call 'turn/start :session session :text "say meanwhile") :turn))
    (funcall call 'session/attach :session session :after last)
    (dwell-check "the first event" (plist-get (dwell-event "turn_started") :seq) (1+ last))
    (dwell-check "what was said" (plist-get (dwell-event "said") :text) "meanwhile"))

  ;; An answer of more than 5 MB.
  (let* ((piece (make-string 4096 ?ü))
         (turn (plist-get (funcall call 'turn/start :session session :text (concat "repeat 640 " piece)) :turn))
         (reply (plist-get (funcall call 'turn/wait :turn turn) :reply)))
    (dwell-check "the reply's length" (length reply) (* 640 4096)))
  (jsonrpc-shutdown dwell))

(princ "scenario passed\n")
;;; emacs.el ends here
