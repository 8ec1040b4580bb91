//! Messages without a tag: what `fi_send`, `fi_recv` and their relatives call.

super::calls::table! {
    MsgOps, Msg:
        recv = recv, recvv = recvv, recvmsg = recvmsg, send = send, sendv = sendv,
        sendmsg = sendmsg, inject = inject, senddata = senddata, injectdata = injectdata;
    incoming() => Subject::UNTAGGED;
    outgoing() => Subject::UNTAGGED;
}
